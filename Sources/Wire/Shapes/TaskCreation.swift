/// The body of `POST /v1/sessions/{identifier}/tasks`, and each line or element of a batch.
@dynamicMemberLookup
public struct TaskCreation: Shape {
    public var kind = TaskKind()
    /// The request; `nil` only with ``resumeData``.
    public var request: TransferRequest?
    /// The body of an upload.
    public var body: BodySource?
    /// The resume data of a cancelled download, which this task resumes.
    public var resumeData: String?
    /// Whether the task starts at once.
    public var state = TaskState.running
    /// The other terms of the task.
    public var terms = TaskTerms()

    public init() {}

    private init(kind: TaskKind, request: TransferRequest?) {
        self.kind = kind
        self.request = request
    }

    public static func download(_ request: TransferRequest) -> TaskCreation {
        TaskCreation(kind: .download, request: request)
    }

    public static func upload(_ request: TransferRequest, body: BodySource) -> TaskCreation {
        var task = TaskCreation(kind: .upload, request: request)
        task.body = body
        return task
    }

    /// Creates a download that resumes a cancelled one.
    public static func download(resumeData: String) -> TaskCreation {
        var task = TaskCreation(kind: .download, request: nil)
        task.resumeData = resumeData
        return task
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.optional("request", &request)
        members.optional("body", &body)
        members.optional("resumeData", &resumeData, .length(1...262_144))
        members.sparse("state", &state, unless: .running)
        terms.visit(&members, isShown: false)
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<TaskTerms, Value>) -> Value {
        get { terms[keyPath: member] }
        set { terms[keyPath: member] = newValue }
    }

    public func check(_ reader: inout ObjectReader) {
        request?.check(as: kind, at: "request", &reader)
        if state.isKnown, state != .running, state != .suspended {
            reader.report("state", "A task begins running or suspended.")
        }
        terms.check(as: kind, isObject: request?.bucket != nil, &reader)
        let hasRequest = reader.presence(of: "request") == .present
        let hasBody = reader.presence(of: "body") == .present
        if reader.presence(of: "resumeData") == .present {
            if kind == .upload { reader.report("resumeData", "Only downloads have resume data.") }
            if hasRequest {
                reader.report("request", "With resumeData the task has the request of the cancelled task.")
            }
            if terms.destination?.bucket != nil {
                reader.report("destination", "bucket", detail: "With resumeData the content is already on disk.")
            }
            if hasBody { reader.report("body", "With resumeData the task has the request of the cancelled task.") }
            return
        }
        if !hasRequest { reader.report("request", "This member is missing; it must be an object with a url.") }
        if kind == .upload {
            if !hasBody { reader.report("body", "An upload needs a body.") }
            if request?.method == "GET" || request?.method == "HEAD" {
                reader.report("request", "An upload needs a method that sends a body, such as PUT or POST.")
            }
        } else if kind == .download, hasBody {
            reader.report("body", "A download has its body in its request, as request.body, and a method such as POST.")
        }
    }
}
