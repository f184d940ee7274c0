package import Formats

/// Placeholder
package struct SetExpansionError: Error { package let detail: String }
package struct SetExpansion: Shape {
    package var commit: String?
    package var next: String?
    package init() {}
    package init(of source: SetSource) {}
    package var isComplete: Bool { next == nil }
    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("commit", &commit)
        members.optional("next", &next)
    }
    package mutating func take(_ document: [UInt8], _ headers: HTTPFields, from url: String, for source: SetSource) throws(SetExpansionError) -> [SetFile] { [] }
}
package enum SetPath {
    package static func collision(in paths: [String]) -> (Int, Int)? { nil }
}
