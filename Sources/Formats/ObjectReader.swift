/// The strictness of reading.
public enum ReadingMode: Sendable {
    /// For requests: unknown members and values that violate their rules are faults.
    case strict
    /// For responses, which may come from a newer service: unknown members are skipped, and only types are checked.
    case tolerant
}

/// A type that is read from one JSON object.
public protocol JSONReadable {
    /// Reads the members. Missing and wrong ones are reported, and have a placeholder as their value.
    init(reading reader: inout ObjectReader)
}

extension JSONReadable {
    /// Reads JSON text, such as a request's body.
    ///
    /// - Throws: ``JSONError`` with all faults.
    public init(parsing bytes: [UInt8], _ mode: ReadingMode = .strict) throws(JSONError) {
        try self.init(from: try JSON.parse(bytes), mode)
    }

    /// Reads a parsed value.
    public init(from json: JSON, _ mode: ReadingMode = .strict) throws(JSONError) {
        let faults = Faults()
        guard case .object(let members) = json else {
            throw .invalid("This must be an object, not \(json.kind).", at: "")
        }
        var reader = ObjectReader(members: members, path: nil, faults: faults, mode: mode)
        self.init(reading: &reader)
        reader.finish()
        guard faults.list.isEmpty else { throw .invalid(faults.list) }
    }
}

/// The faults of a document, collected during reading.
public final class Faults {
    /// The maximum number of reported faults.
    public static let maximumCount = 100

    private(set) var list: [Fault] = []

    init() {}

    func report(_ path: JSONPath?, _ detail: String, _ code: Fault.Code = .invalidValue) {
        guard list.count < Self.maximumCount else { return }
        list.append(Fault(pointer: path?.pointer ?? "", code: code, detail: detail))
    }
}

@available(*, unavailable)
extension Faults: Sendable {}

/// Reads the members of an object by name and records the remaining ones.
///
/// Wrong values are reported and not assigned, so that one reading finds all faults.
public struct ObjectReader {
    /// The checks that apply.
    public let mode: ReadingMode
    let path: JSONPath?
    let faults: Faults
    private let members: [JSON.Member]
    /// The index at which the search for the next member begins: most objects have their members in reading order.
    private var next = 0
    /// The members that were read, for ``finish()``; used in strict mode only.
    private var isTaken: [Bool]
    private var askedNames: [String] = []

    init(members: [JSON.Member], path: JSONPath?, faults: Faults, mode: ReadingMode) {
        self.members = members
        self.path = path
        self.faults = faults
        self.mode = mode
        isTaken = Array(repeating: false, count: mode == .strict ? members.count : 0)
    }

    /// Whether a member exists, and whether it has a value.
    public enum Presence: Sendable, Hashable {
        case absent, null, present
    }

    /// Returns the presence of a member without reading it.
    public func presence(of name: String) -> Presence {
        guard let value = peek(name) else { return .absent }
        return value.isNull ? .null : .present
    }

    /// Reports that the value of a member violates a rule.
    public mutating func report(_ name: String, _ detail: String) {
        faults.report(JSONPath(.name(name), in: path), detail)
    }

    /// Reports that a nested value violates a rule.
    package mutating func report(_ names: String..., detail: String) {
        faults.report(names.reduce(path) { JSONPath(.name($1), in: $0) }, detail)
    }

    /// Reports that the object as a whole violates a rule.
    public mutating func report(_ detail: String) { faults.report(path, detail) }

    /// The names of all members, for objects with arbitrary names.
    package var names: [String] { members.map(\.name) }

    /// Returns the value of a member without marking it as read.
    func peek(_ name: String) -> JSON? { members.first { $0.isNamed(name) }?.value }

    /// Returns the value of a member and marks it as read; `nil` if it is absent.
    @usableFromInline
    mutating func take(_ name: String) -> JSON? {
        let isNext = next < members.count && members[next].isNamed(name)
        let index = isNext ? next : members.firstIndex { $0.isNamed(name) }
        if mode == .strict {
            askedNames.append(name)
            if let index { isTaken[index] = true }
        }
        guard let index else { return nil }
        next = index + 1
        return members[index].value
    }

    /// Reads a member that is an object; `body` reads its members.
    package mutating func object(_ name: String, _ body: (inout ObjectReader) -> Void) {
        guard let json = take(name) else { return report(name, "This member is missing; it must be an object.") }
        guard var reader = position(of: name).reader(of: json) else { return }
        body(&reader)
        reader.finish()
    }

    /// Marks members as read whose faults were reported together.
    package mutating func takeAll(_ names: [String]) {
        for name in names { _ = take(name) }
    }

    @usableFromInline
    func position(of name: String, orNull: Bool = false) -> JSONPosition {
        JSONPosition(.name(name), in: path, faults, mode, orNull: orNull)
    }

    /// Reports the members that were not read. Called after the object was read.
    @usableFromInline
    func finish() {
        guard mode == .strict, isTaken.contains(false) else { return }
        let detail = "There is no such member. " + Self.choice(askedNames)
        for (index, member) in members.enumerated() where !isTaken[index] {
            faults.report(JSONPath(.name(member.name), in: path), detail, .unknownMember)
        }
    }

    private static func choice(_ names: [String]) -> String {
        var seen: Set<String> = []
        let names = names.filter { seen.insert($0).inserted }
        return names.isEmpty ? "The object must be empty." : "There are: " + names.joined(separator: ", ") + "."
    }
}
