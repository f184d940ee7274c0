/// An error as the service answers it (RFC 9457).
public struct Problem: Error, Shape {
    /// One fault of a request: of its body, or of its query.
    public struct Entry: Shape {
        /// A JSON Pointer into the body (RFC 6901), where the fault is there.
        public var pointer: String?
        /// The name of a query parameter, where the fault is there.
        public var parameter: String?
        /// What is wrong there and what would be right.
        public var detail = ""

        public init() {}

        public init(pointer: String, detail: String) {
            self.pointer = pointer
            self.detail = detail
        }

        public init(parameter: String, detail: String) {
            self.parameter = parameter
            self.detail = detail
        }

        /// Where the fault is, for a person.
        public var place: String { pointer ?? parameter ?? "" }

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.optional("pointer", &pointer)
            members.optional("parameter", &parameter)
            members.member("detail", &detail)
        }
    }

    /// What clients switch on.
    public var code = ProblemCode()
    /// The HTTP status, that of ``code`` unless there is a reason.
    public var status: Int = 0
    /// The same for every problem of a code.
    public var title = ""
    /// What is wrong this time and what to do, for a person.
    public var detail = ""
    /// The request this is about.
    public var instance = ""
    /// The faults of body or query, where they have some.
    public var errors: [Entry] = []
    /// With `events-expired`: the oldest event that is left.
    public var oldestSeq: Int64?
    /// With `cursor-invalid`: which session of the identifier this is.
    public var incarnation: Int64?
    /// With `cursor-invalid`: its last event.
    public var lastSeq: Int64?

    public init() {}

    /// Makes a problem with the title of its code, and its status unless another is given.
    public init(
        _ code: ProblemCode, _ detail: String, status: Int? = nil, instance: String = "", errors: [Entry] = [],
        oldestSeq: Int64? = nil, incarnation: Int64? = nil, lastSeq: Int64? = nil
    ) {
        self.code = code
        self.status = status ?? code.status
        title = code.title
        self.detail = detail
        self.instance = instance
        self.errors = errors
        self.oldestSeq = oldestSeq
        self.incarnation = incarnation
        self.lastSeq = lastSeq
    }

    /// The problem of a body that could not be read.
    public init(_ error: JSONError, instance: String = "") {
        switch error {
        case .malformed(let offset, let detail):
            self.init(.malformedJSON, "The body is not JSON: at byte \(offset), \(detail).", instance: instance)
        case .invalid(let faults):
            // The title is that of the code: the detail begins with a fault of the same kind.
            let named = faults.first { $0.code.rawValue == error.code }
            let first = named.map { "\($0.pointer.isEmpty ? "The body" : $0.pointer): \($0.detail)" } ?? ""
            let more =
                switch faults.count {
                case 0...1: ""
                case 2: " There is 1 more fault."
                default: " There are \(faults.count - 1) more faults."
                }
            self.init(
                ProblemCode(rawValue: error.code), first + more, instance: instance,
                errors: faults.map { Entry(pointer: $0.pointer, detail: $0.detail) })
        }
    }

    /// The page about a code.
    public var type: String { ProblemCode.typePrefix + code.rawValue }

    public mutating func visit(_ members: inout some MemberVisitor) {
        var type = type
        members.defaulted("type", &type)
        members.defaulted("title", &title)
        members.member("status", &status, 400...599)
        members.defaulted("detail", &detail)
        members.defaulted("instance", &instance)
        members.member("code", &code)
        members.sparse("errors", &errors, unless: [])
        members.optional("oldestSeq", &oldestSeq)
        members.optional("incarnation", &incarnation)
        members.optional("lastSeq", &lastSeq)
    }
}
