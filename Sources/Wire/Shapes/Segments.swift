/// The number of concurrent connections of a download.
///
/// A client reads a word of a newer service as ``auto``: the service chooses the number.
public enum Segments: Sendable, Hashable {
    /// 1 to 16.
    case count(Int)
    /// One for each 16 MiB, 8 at most.
    case auto

    /// The default.
    public static let one = Segments.count(1)
}

extension Segments: MemberValue {
    public static var kind: String { "a number from 1 to 16, or \"auto\"" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> Segments? {
        if case .string(let word) = json, word == "auto" || position.mode == .tolerant { return .auto }
        let count = json.integerValue.flatMap { Int(exactly: $0) }
        if let count, position.mode == .tolerant || (1...16).contains(count) { return .count(count) }
        position.report("This must be \(kind).")
        return nil
    }

    public func write(to writer: inout JSONWriter) {
        switch self {
        case .count(let count): writer.value(Int64(count))
        case .auto: writer.value("auto")
        }
    }
}

/// Digests of consecutive pieces of a content. All have the same length but the last, which may be shorter.
public struct Pieces: Shape {
    /// The length of a piece in bytes.
    public var length: Int64 = 0
    public var algorithm = ContentDigest.Algorithm()
    /// One digest for each piece, in lower-case hex.
    public var values: [String] = []

    /// The maximum number of pieces of one content.
    public static let mostValues = 16_384

    public init() {}

    public init(length: Int64, algorithm: ContentDigest.Algorithm, values: [String]) {
        self.length = length
        self.algorithm = algorithm
        self.values = values
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("length", &length, 1024...1 << 40)
        members.member("algorithm", &algorithm)
        members.member("values", &values, .count(1...Self.mostValues))
    }

    /// The values may be in hex of either case or in base64.
    public mutating func check(_ reader: inout ObjectReader) {
        for index in values.indices {
            guard let hex = algorithm.hexadecimal(values[index]) else {
                if let detail = algorithm.wanted { reader.report("values", "\(index)", detail: detail) }
                continue
            }
            values[index] = hex
        }
    }
}

/// The state of one segment of a download.
public struct SegmentState: Shape {
    public var offset: Int64 = 0
    public var length: Int64 = 0
    /// The number of its bytes that were received.
    public var received: Int64 = 0
    /// The source: 0 for the task's own URL, higher numbers for its mirrors; `nil` if the segment is not being fetched.
    public var source: Int64?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("offset", &offset)
        members.member("length", &length)
        members.member("received", &received)
        members.nullable("source", &source)
    }
}
