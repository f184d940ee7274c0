/// Something wrong with one place of a document that is well-formed JSON.
public struct Fault: Error, Sendable, Hashable {
    /// Which rule the place breaks. The raw values are the service's problem codes.
    public enum Code: String, Sendable, Hashable, CaseIterable {
        case duplicateMember = "duplicate-member"
        case unknownMember = "unknown-member"
        case invalidValue = "invalid-value"
    }

    /// A JSON Pointer to the place (RFC 6901); empty for the whole document.
    public var pointer: String
    /// Which rule the place breaks.
    public var code: Code
    /// What is wrong and what would be right, for a person.
    public var detail: String

    /// Puts a reference token in front of the pointer.
    mutating func prefix(_ token: String) { pointer = JSONPath.token(token) + pointer }
}

/// Why bytes are not what was asked for.
public enum JSONError: Error, Sendable, Hashable {
    /// Not JSON (RFC 8259), or nested too deep. The offset counts bytes from the beginning.
    case malformed(offset: Int, detail: String)
    /// JSON, but with faults: at least one, at most ``Faults/maximumCount``, in the order they were found.
    case invalid([Fault])

    /// One value that breaks a rule.
    ///
    /// - Parameter pointer: A JSON Pointer to it (RFC 6901).
    public static func invalid(_ detail: String, at pointer: String) -> JSONError {
        .invalid([Fault(pointer: pointer, code: .invalidValue, detail: detail)])
    }

    /// The code for the whole: `malformed-json`, else that of the worst fault. A duplicate or unknown name comes first: it
    /// is usually why another one is missing.
    public var code: String {
        switch self {
        case .malformed: "malformed-json"
        case .invalid(let faults):
            (Fault.Code.allCases.first { code in faults.contains { $0.code == code } } ?? .invalidValue).rawValue
        }
    }

    /// The faults, none for what is malformed.
    public var faults: [Fault] {
        switch self {
        case .malformed: []
        case .invalid(let faults): faults
        }
    }
}

/// A place in a document, from the root down. Only written out when there is something to say about it.
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
