import Formats

/// A search text for tasks. It matches if it is a part, ignoring case, of the task's client id, description or file
/// name, or of its address without query, fragment and user information, which may hold secrets.
package struct TaskSearch: Hashable, Sendable {
    private let text: [UInt8]

    package init(_ text: String) { self.text = Self.folded(text) }

    /// Whether a task matches.
    ///
    /// - Parameter suggestedFilename: Returns the file name that its response suggested; called last.
    package func matches(
        _ specification: TaskSpecification, suggestedFilename: () throws -> String?
    ) rethrows -> Bool {
        if let name = specification.clientTaskId, isPart(of: name) { return true }
        if let name = specification.taskDescription, isPart(of: name) { return true }
        if isPart(of: specification.request) { return true }
        return try suggestedFilename().map(isPart(of:)) ?? false
    }

    /// The path is compared as given and decoded: `my%20file` and `my file` have the same matches.
    private func isPart(of request: TransferRequest) -> Bool {
        guard request.object == nil else { return isPart(of: request.address) }
        let address = Self.address(of: request.url)
        if isPart(of: address) { return true }
        guard address.utf8.contains(UInt8(ascii: "%")) else { return false }
        return isPart(of: String(decoding: PercentCoding.decode(address.utf8).bytes, as: UTF8.self))
    }

    /// A URL without query, fragment and user information.
    private static func address(of url: String) -> String {
        let bytes = Array(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard let slash = bytes.firstIndex(of: UInt8(ascii: "/")) else { return String(decoding: bytes, as: UTF8.self) }
        let start = bytes[slash...].firstIndex { $0 != UInt8(ascii: "/") } ?? bytes.endIndex
        let end = bytes[start...].firstIndex(of: UInt8(ascii: "/")) ?? bytes.endIndex
        let host = bytes[start..<end].lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? start
        return String(decoding: bytes[..<start] + bytes[host...], as: UTF8.self)
    }

    private func isPart(of name: String) -> Bool {
        let name = Self.folded(name)
        guard let first = text.first, name.count >= text.count else { return text.isEmpty }
        return (0...(name.count - text.count)).contains { start in
            name[start] == first && name[start..<(start + text.count)].elementsEqual(text)
        }
    }

    private static func folded(_ text: String) -> [UInt8] { Array(text.lowercased().utf8) }
}

/// A task that a search examined.
package struct SearchedTask<Known: Sendable>: Sendable {
    /// The task's position in the list.
    package let position: Int64
    /// `nil` if the search does not match.
    package let task: FoundTask<Known>?

    package init(position: Int64, task: FoundTask<Known>?) {
        self.position = position
        self.task = task
    }
}
