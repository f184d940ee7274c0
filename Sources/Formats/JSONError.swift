/// A fault of one value in a well-formed JSON document.
public struct Fault: Error, Sendable, Hashable {
    /// The violated rule. The raw values are the service's problem codes.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        case duplicateMember = "duplicate-member"
        case unknownMember = "unknown-member"
        case invalidValue = "invalid-value"
    }

    /// A JSON Pointer to the value (RFC 6901); empty for the whole document.
    public var pointer: String
    /// The violated rule.
    public var code: Code
    /// A description of the fault and of a valid value.
    public var detail: String

    /// Prepends a reference token to the pointer.
    mutating func prefix(_ token: String) { pointer = JSONPath.token(token) + pointer }
}

/// The reason why bytes cannot be read as a document.
public enum JSONError: Error, Sendable, Hashable {
    /// Not JSON (RFC 8259), or nested too deep. The offset counts bytes from the beginning.
    case malformed(offset: Int, detail: String)
    /// JSON with faults: at least one, at most ``Faults/maximumCount``, in the order of their discovery.
    case invalid([Fault])

    /// An error with one fault.
    ///
    /// - Parameter pointer: A JSON Pointer to the value (RFC 6901).
    public static func invalid(_ detail: String, at pointer: String) -> JSONError {
        .invalid([Fault(pointer: pointer, code: .invalidValue, detail: detail)])
    }

    /// The code of the whole error: `malformed-json`, else that of the worst fault. A duplicate or unknown name comes
    /// first, because it is usually the cause of a missing one.
    public var code: String {
        switch self {
        case .malformed: "malformed-json"
        case .invalid(let faults):
            (Fault.Code.allCases.first { code in faults.contains { $0.code == code } } ?? .invalidValue).rawValue
        }
    }

    /// The faults; empty for ``malformed(offset:detail:)``.
    public var faults: [Fault] {
        switch self {
        case .malformed: []
        case .invalid(let faults): faults
        }
    }
}

/// A position in a document, from the root down. It is converted to text only for a report.
@usableFromInline
final class JSONPath {
    @usableFromInline
    enum Step {
        case name(String)
        case index(Int)
    }

    private let parent: JSONPath?
    private let step: Step

    init(_ step: Step, in parent: JSONPath?) {
        self.parent = parent
        self.step = step
    }

    var pointer: String {
        switch step {
        case .name(let name): (parent?.pointer ?? "") + Self.token(name)
        case .index(let index): (parent?.pointer ?? "") + "/\(index)"
        }
    }

    /// One reference token of a pointer (RFC 6901 section 3).
    static func token(_ name: String) -> String {
        var result = "/"
        for scalar in name.unicodeScalars {
            switch scalar {
            case "~": result += "~0"
            case "/": result += "~1"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
