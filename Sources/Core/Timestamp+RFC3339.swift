package import Formats

extension Timestamp {
    /// 0000-01-01T00:00:00.000Z, the first time that RFC 3339 can represent.
    package static let earliestWritable = Timestamp(milliseconds: TimeText.writable.lowerBound)
    /// 9999-12-31T23:59:59.999Z, the last one.
    package static let latestWritable = Timestamp(milliseconds: TimeText.writable.upperBound)

    /// UTC with milliseconds, `2026-12-01T00:00:00.000Z`. Other years than 0000–9999 become the nearest.
    package var rfc3339: String {
        var text: [UInt8] = []
        TimeText.append(milliseconds, to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// Parses RFC 3339; a leap second becomes the following midnight.
    package init?(rfc3339 text: String) {
        guard let milliseconds = TimeText.parse(text) else { return nil }
        self.init(milliseconds: milliseconds)
    }
}

extension Timestamp: MemberValue {
    package static var kind: String { "a time" }

    package static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> Timestamp? {
        Int64.read(json, nil, position).map(Timestamp.init(milliseconds:))
    }

    package static func read(kept reader: inout KeptReader) -> Timestamp? {
        Int64.read(kept: &reader).map(Timestamp.init(milliseconds:))
    }

    /// A number at rest, which is parsed faster.
    package func write(to writer: inout JSONWriter) {
        switch writer.purpose {
        case .rest: writer.integer(milliseconds)
        case .travel: writer.string(rfc3339)
        }
    }
}
