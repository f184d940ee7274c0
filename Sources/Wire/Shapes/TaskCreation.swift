/// What `POST /v1/sessions/{identifier}/tasks` takes, and each line and element of a batch.
public struct TaskCreation: Sendable, Hashable {
    /// What it does.
    public var kind: TaskKind
    /// What it sends; `nil` only with ``resumeData``.
    public var request: TransferRequest?
    /// The body of an upload.
    public var body: BodySource?
    /// What a cancel produced, to go on from there.
    public var resumeData: String?
    /// Whether it starts at once.
    public var state: TaskState
    /// The app's name for it, unique in the session.
    public var clientTaskId: String?
    /// What it belongs to, for session-wide calls.
    public var group: String?
    /// The app's words about it.
    public var taskDescription: String?
    /// The app's own names and texts.
    public var metadata: StringMap
    /// 0 to 1.
    public var priority: Double
    /// Not before this time (RFC 3339).
    public var earliestBeginDate: String?
    /// Whether the app is asked once before the first attempt.
    public var confirmBeforeStart: Bool
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
    public var acceptableStatusCodes: [String]
    /// Whether other codes fail the task.
    public var failOnHTTPError: Bool
    /// Where the content is moved.
    public var destination: Destination?

    /// What is acceptable unless a task says otherwise.
    public static let standardStatusCodes = ["200-299"]

    /// Makes a download.
    public static func download(_ request: TransferRequest) -> TaskCreation {
        TaskCreation(kind: .download, request: request)
    }

    /// Makes an upload.
    public static func upload(_ request: TransferRequest, body: BodySource) -> TaskCreation {
        var task = TaskCreation(kind: .upload, request: request)
        task.body = body
        return task
    }

    /// Makes a download that goes on where a cancelled one stopped.
    public static func download(resumeData: String) -> TaskCreation {
        var task = TaskCreation(kind: .download, request: nil)
        task.resumeData = resumeData
        return task
    }

    private init(kind: TaskKind, request: TransferRequest?) {
        self.kind = kind
        self.request = request
        state = .running
        metadata = [:]
        priority = 0.5
        confirmBeforeStart = false
        acceptableStatusCodes = Self.standardStatusCodes
        failOnHTTPError = false
    }
}

extension TaskCreation: JSONReadable {
    /// Reads a task to be created.
    public init(reading reader: inout ObjectReader) {
        kind = reader.word("kind")
        let isDownload = kind != .upload
        request = reader.optionalObject("request") { TransferRequest(reading: &$0, forDownload: isDownload) }
        body = reader.optionalObject("body")
        resumeData = reader.optionalString("resumeData", .length(1...262_144))
        let word: TaskState = reader.word("state", default: .running)
        state = word
        clientTaskId = reader.optionalString("clientTaskId", .plain(1...256))
        group = reader.optionalString("group", .plain(1...256))
        taskDescription = reader.optionalString("taskDescription", .length(0...TaskRules.maximumDescriptionLength))
        metadata = reader.metadata()
        priority = reader.number("priority", default: 0.5, in: 0...1)
        earliestBeginDate = reader.optionalString("earliestBeginDate", .timestamp)
        confirmBeforeStart = reader.bool("confirmBeforeStart", default: false)
        countOfBytesClientExpectsToSend = reader.optionalInteger("countOfBytesClientExpectsToSend", in: 0 ... .max)
        countOfBytesClientExpectsToReceive =
            reader.optionalInteger("countOfBytesClientExpectsToReceive", in: 0 ... .max)
        expectedDigest = reader.optionalObject("expectedDigest")
        maximumContentLength = reader.optionalInteger("maximumContentLength", in: 0 ... .max)
        ifNoneMatch = reader.optionalString("ifNoneMatch", .entityTag)
        acceptableStatusCodes = reader.strings(
            "acceptableStatusCodes", default: Self.standardStatusCodes, .statusRange, count: 1...100)
        failOnHTTPError = reader.bool("failOnHTTPError", default: false)
        destination = reader.optionalObject("destination")
        if reader.mode == .strict { checkTogether(&reader) }
    }

    /// What members say about each other.
    private func checkTogether(_ reader: inout ObjectReader) {
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
    static let maximumMetadataCount = 64
}

extension ObjectReader {
    mutating func metadata() -> StringMap {
        stringMap(
            "metadata", names: .plain(1...256), values: .length(0...4096), count: 0...TaskRules.maximumMetadataCount)
    }
}

extension TaskCreation: JSONWritable {
    /// Writes an object with the members that are not at their defaults.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("kind", kind)
            writer.memberIfPresent("request", request)
            writer.memberIfPresent("body", body)
            writer.memberIfPresent("resumeData", resumeData)
            if state != .running { writer.member("state", state) }
            writer.memberIfPresent("clientTaskId", clientTaskId)
            writer.memberIfPresent("group", group)
            writer.memberIfPresent("taskDescription", taskDescription)
            if !metadata.isEmpty { writer.member("metadata", metadata) }
            if priority != 0.5 { writer.member("priority", priority) }
            writer.memberIfPresent("earliestBeginDate", earliestBeginDate)
            if confirmBeforeStart { writer.member("confirmBeforeStart", true) }
            writer.memberIfPresent("countOfBytesClientExpectsToSend", countOfBytesClientExpectsToSend)
            writer.memberIfPresent("countOfBytesClientExpectsToReceive", countOfBytesClientExpectsToReceive)
            writer.memberIfPresent("expectedDigest", expectedDigest)
            writer.memberIfPresent("maximumContentLength", maximumContentLength)
            writer.memberIfPresent("ifNoneMatch", ifNoneMatch)
            if acceptableStatusCodes != Self.standardStatusCodes {
                writer.member("acceptableStatusCodes", acceptableStatusCodes)
            }
            if failOnHTTPError { writer.member("failOnHTTPError", true) }
            writer.memberIfPresent("destination", destination)
        }
    }
}
