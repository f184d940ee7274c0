/// An error as the service returns it (RFC 9457).
public struct Problem: Error, Shape {
    /// One fault of a request's body or query.
    public struct Entry: Shape {
        /// A JSON Pointer into the body (RFC 6901), for a fault of the body.
        public var pointer: String?
        /// The name of a query parameter, for a fault of the query.
        public var parameter: String?
        /// A description of the fault and of a valid value.
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

        /// The position of the fault, for people.
        public var place: String { pointer ?? parameter ?? "" }

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.optional("pointer", &pointer)
            members.optional("parameter", &parameter)
            members.member("detail", &detail)
        }
    }

    /// The code, for programs.
    public var code = ProblemCode()
    /// The HTTP status, usually that of ``code``.
    public var status: Int = 0
    /// The title of the code.
    public var title = ""
    /// A description of the fault and its remedy, for people.
    public var detail = ""
    /// The path of the request.
    public var instance = ""
    /// The faults of body or query, if any.
    public var errors: [Entry] = []
    /// With `events-expired`: the oldest event that is kept.
    public var oldestSeq: Int64?
    /// With `cursor-invalid`: the incarnation of the session.
    public var incarnation: Int64?
    /// With `cursor-invalid`: the last event of the session.
    public var lastSeq: Int64?
    /// Seconds until the same request may succeed: the `Retry-After` of a response that a client received. Not a member
    /// of the JSON.
    public var retryAfter: Int64?

    public init() {}

    /// Creates a problem with the title of its code, and its status unless another one is given.
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

    /// Creates the problem of a body that could not be read.
    public init(_ error: JSONError, instance: String = "") {
        switch error {
        case .malformed(let offset, let detail):
            self.init(.malformedJSON, "The body is not JSON: at byte \(offset), \(detail).", instance: instance)
        case .invalid(let faults):
            // The title belongs to the code, so the detail begins with a fault of the same code.
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

    /// The URL of the page about the code.
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
