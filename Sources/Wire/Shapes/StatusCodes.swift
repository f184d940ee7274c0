/// A status code or a range of them, such as `"404"` or `"200-299"`. A single one may also be sent as a number.
public struct StatusCodes: Sendable, Hashable {
    public var text: String

    public init(_ text: String) { self.text = text }

    /// Reads `204` or `200-299`; codes are 100 to 599.
    public static func parse(_ text: String) -> ClosedRange<Int>? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { part -> Int? in
            guard part.utf8.count == 3, part.utf8.allSatisfy(Bytes.isDigit), let code = Int(part) else { return nil }
            return (100...599).contains(code) ? code : nil
        }
        switch parts.count {
        case 1: return parts[0].map { $0...$0 }
        case 2:
            guard let first = parts[0], let last = parts[1], first <= last else { return nil }
            return first...last
        default: return nil
        }
    }
}

extension StatusCodes: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral {
    public init(stringLiteral text: String) { self.init(text) }
    public init(integerLiteral code: Int) { self.init(String(code)) }
}

extension StatusCodes: MemberValue {
    public static var kind: String { "a status code or a range of them" }
    public static var kinds: String? { "status codes and ranges of them" }

    public static func read(_ json: JSON, _ rule: TextRule?, _ position: JSONPosition) -> StatusCodes? {
        let text = json.integerValue.map { String($0) } ?? json.stringValue
        guard let text else { return position.reject(kind, json) }
        if let detail = rule?.violation(in: text) { position.report(detail) }
        return StatusCodes(text)
    }

    public func write(to writer: inout JSONWriter) { writer.value(text) }
}
