/// How strictly a document is read.
public enum ReadingMode: Sendable {
    /// As the service reads its clients: unknown members and values outside their rules are faults.
    case strict
    /// As a client reads the service, which may be newer: unknown members are passed over, and only types count.
    case tolerant
}

/// Something that is read from one JSON object.
public protocol JSONReadable {
    /// Takes its members from the reader. What is missing or wrong is reported there, and stands here as a placeholder.
    init(reading reader: inout ObjectReader)
}

extension JSONReadable {
    /// Reads JSON text, such as a request's body.
    ///
    /// - Throws: All faults at once.
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

/// What is wrong with a document, gathered while it is read.
public final class Faults {
    /// More faults than this are not told.
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

/// Takes members out of an object, one by name, and remembers which are left.
///
/// Wrong values are reported and left as they were, so that one reading finds all faults.
public struct ObjectReader {
    /// What is checked.
    public let mode: ReadingMode
    let path: JSONPath?
    let faults: Faults
    private let members: [JSON.Member]
    /// Where the next member is looked for first: most objects have them in the order in which they are asked for.
    private var next = 0
    /// Kept by strict readers, for ``finish()``.
    private var isTaken: [Bool]
    private var askedNames: [String] = []

    init(members: [JSON.Member], path: JSONPath?, faults: Faults, mode: ReadingMode) {
        self.members = members
        self.path = path
        self.faults = faults
        self.mode = mode
        isTaken = Array(repeating: false, count: mode == .strict ? members.count : 0)
    }

    /// Whether a member is there, and whether it has a value.
    public enum Presence: Sendable, Hashable {
        case absent, null, present
    }

    /// Looks for a member without taking it.
    public func presence(of name: String) -> Presence {
        guard let value = peek(name) else { return .absent }
        return value.isNull ? .null : .present
    }

    /// Reports that the value of a member breaks a rule.
    public mutating func report(_ name: String, _ detail: String) {
        faults.report(JSONPath(.name(name), in: path), detail)
    }

    /// Reports that a value further below breaks a rule.
    package mutating func report(_ names: String..., detail: String) {
        faults.report(names.reduce(path) { JSONPath(.name($1), in: $0) }, detail)
    }

    /// Reports that the object as a whole breaks a rule.
    public mutating func report(_ detail: String) { faults.report(path, detail) }

    /// The names of all members, for objects whose names are free.
    package var names: [String] { members.map(\.name) }

    /// Looks at a member without taking it.
    func peek(_ name: String) -> JSON? { members.first { $0.isNamed(name) }?.value }

    /// Takes a member; `nil` where it is absent.
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

    /// Reads a member that is an object; `body` takes its members.
    package mutating func object(_ name: String, _ body: (inout ObjectReader) -> Void) {
        guard let json = take(name) else { return report(name, "This member is missing; it must be an object.") }
        guard var reader = position(of: name).reader(of: json) else { return }
        body(&reader)
        reader.finish()
    }

    /// Takes members whose faults have been reported together.
    package mutating func takeAll(_ names: [String]) {
        for name in names { _ = take(name) }
    }

    @usableFromInline
    func position(of name: String, orNull: Bool = false) -> JSONPosition {
        JSONPosition(.name(name), in: path, faults, mode, orNull: orNull)
    }

    /// Reports the members that were not read. Called when the object has been read.
    @usableFromInline
    func finish() {
        guard mode == .strict, isTaken.contains(false) else { return }
        let detail = "There is no such member here. " + Self.choice(askedNames)
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
