/// One JSON value as compact text, which is copied when it is written again.
public struct JSONText: Sendable, Hashable, MemberValue {
    /// The text in UTF-8.
    public let bytes: [UInt8]

    public init(_ value: some JSONWritable) { bytes = value.jsonBytes }

    /// Wraps text that is known to be one JSON value.
    public init(knownValid bytes: [UInt8]) { self.bytes = bytes }

    /// The empty object.
    public static let emptyObject = JSONText(knownValid: Array("{}".utf8))

    /// Reads the value in tolerant mode.
    public func read<Value: JSONReadable>(_ type: Value.Type = Value.self) throws(JSONError) -> Value {
        try Value(parsing: bytes, .tolerant)
    }

    public func write(to writer: inout JSONWriter) { writer.raw(bytes) }
    public var jsonBytes: [UInt8] { bytes }

    public static var kind: String { JSON.kind }
    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> JSONText? { JSONText(json) }
}
