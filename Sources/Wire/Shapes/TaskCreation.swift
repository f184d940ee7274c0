/// What `POST /v1/sessions/{identifier}/tasks` takes, and each line and element of a batch.
public struct TaskCreation: Shape {
    /// What it does.
    public var kind = TaskKind()
    /// What it sends; `nil` only with ``resumeData``.
    public var request: TransferRequest?
    /// The body of an upload.
    public var body: BodySource?
    /// What a cancel produced, to go on from there.
    public var resumeData: String?
    /// Whether it starts at once.
    public var state = TaskState.running
    /// The app's name for it, unique in the session.
    public var clientTaskId: String?
    /// What it belongs to, for session-wide calls.
    public var group: String?
    /// The app's words about it.
    public var taskDescription: String?
    /// The app's own names and texts.
    public var metadata = StringMap()
    /// 0 to 1.
    public var priority = 0.5
    /// Not before this time (RFC 3339).
    public var earliestBeginDate: String?
    /// Whether the app is asked once before the first attempt.
    public var confirmBeforeStart = false
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToSend: Int64?
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToReceive: Int64?
    /// What the content must have.
    public var expectedDigest: ContentDigest?
    /// Content above this length fails the task.
    public var maximumContentLength: Int64?
    /// The app's validator: a 304 to it is `notModified`.
    public var ifNoneMatch: String?
    /// Codes and ranges of codes that are `succeeded`.
    public var acceptableStatusCodes = Self.standardStatusCodes
    /// Whether other codes fail the task.
    public var failOnHTTPError = false
    /// Where the content is moved.
    public var destination: Destination?

    /// What is acceptable unless a task says otherwise.
    public static let standardStatusCodes = ["200-299"]

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

    /// A download that goes on where a cancelled one stopped.
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
        members.optional("clientTaskId", &clientTaskId, .plain(1...256))
        members.optional("group", &group, .plain(1...256))
        members.optional("taskDescription", &taskDescription, .length(0...TaskRules.maximumDescriptionLength))
        members.sparse("metadata", &metadata, unless: [:], .metadata)
        members.sparse("priority", &priority, unless: 0.5, 0...1)
        members.optional("earliestBeginDate", &earliestBeginDate, .timestamp)
        members.sparse("confirmBeforeStart", &confirmBeforeStart, unless: false)
        members.optional("countOfBytesClientExpectsToSend", &countOfBytesClientExpectsToSend, 0 ... .max)
        members.optional("countOfBytesClientExpectsToReceive", &countOfBytesClientExpectsToReceive, 0 ... .max)
        members.optional("expectedDigest", &expectedDigest)
        members.optional("maximumContentLength", &maximumContentLength, 0 ... .max)
        members.optional("ifNoneMatch", &ifNoneMatch, .entityTag)
        members.sparse(
            "acceptableStatusCodes", &acceptableStatusCodes, unless: Self.standardStatusCodes,
            .each(.statusRange, count: 1...100))
        members.sparse("failOnHTTPError", &failOnHTTPError, unless: false)
        members.optional("destination", &destination)
    }

    public func check(_ reader: inout ObjectReader) {
        request?.check(as: kind, at: "request", &reader)
        if state.isKnown, state != .running, state != .suspended {
            reader.report("state", "A task begins running or suspended.")
        }
        let hasRequest = reader.presence(of: "request") == .present
        let hasBody = reader.presence(of: "body") == .present
        if reader.presence(of: "resumeData") == .present {
            if kind == .upload { reader.report("resumeData", "Only downloads go on from resume data.") }
            if hasRequest { reader.report("request", "With resumeData the request is that of the cancelled task.") }
            if hasBody { reader.report("body", "With resumeData the request is that of the cancelled task.") }
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

/// Bounds that creation and change of a task share.
enum TaskRules {
    static let maximumDescriptionLength = 4096
}

extension StringMap.Rule {
    static let metadata = Self(names: .plain(1...256), values: .length(0...4096), maximumCount: 64)
}
