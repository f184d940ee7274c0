package import Formats

/// The number of connections that a download may use at the same time.
package enum SegmentCount: Hashable, Sendable {
    case count(Int)
    /// One for each 16 MiB, at most 8.
    case automatic

    package static let one = SegmentCount.count(1)
    package static let most = 16

    private static let bytesOfEach: Int64 = 16 << 20
    private static let mostAutomatic: Int64 = 8

    /// - Parameter total: The content's length; `nil` if it is not known yet.
    package func connections(for total: Int64?) -> Int {
        switch self {
        case .count(let count): count
        case .automatic: Int(min(Self.mostAutomatic, max(1, (total ?? .max) / Self.bytesOfEach)))
        }
    }
}

extension SegmentCount: MemberValue {
    package static var kind: String { "a number or \"auto\"" }

    package static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> SegmentCount? {
        if case .string("auto") = json { return .automatic }
        return Int.read(json, 1...most, position).map(SegmentCount.count)
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .count(let count): writer.value(Int64(count))
        case .automatic: writer.value("auto")
        }
    }
}
