/// The kind of a problem, for programs. Later versions within `v1` may add codes.
public struct ProblemCode: WireName {
    /// The beginning of a problem's `type`.
    public static let typePrefix = "https://urlsessiond.dev/problems/"

    public let rawValue: String
    /// The status of responses with this code; 500 for an unknown code.
    public let status: Int
    /// The title of every problem with this code, for people.
    public let title: String

    public init(rawValue: String) {
        self = Self.known.first { $0.rawValue == rawValue } ?? Self(rawValue, 500, rawValue)
    }

    private init(_ rawValue: String, _ status: Int, _ title: String) {
        self.rawValue = rawValue
        self.status = status
        self.title = title
    }

    public static let malformedJSON = Self("malformed-json", 400, "The body is malformed")
    public static let duplicateMember = Self("duplicate-member", 422, "A member stands twice")
    public static let unknownMember = Self("unknown-member", 422, "There is no such member")
    public static let invalidValue = Self("invalid-value", 422, "A value is not valid")
    public static let unauthorized = Self("unauthorized", 401, "A valid key is needed")
    public static let insufficientScope = Self("insufficient-scope", 403, "The key does not allow this")
    public static let notFound = Self("not-found", 404, "There is no such resource")
    public static let methodNotAllowed = Self("method-not-allowed", 405, "The resource does not support this method")
    public static let notAcceptable = Self("not-acceptable", 406, "There is no acceptable representation")
    public static let requestTimeout = Self("request-timeout", 408, "The request took too long")
    public static let lengthRequired = Self("length-required", 411, "The request needs a length")
    public static let preconditionFailed = Self("precondition-failed", 412, "A precondition does not hold")
    public static let payloadTooLarge = Self("payload-too-large", 413, "The body is too large")
    public static let uriTooLong = Self("uri-too-long", 414, "The URL is too long")
    public static let unsupportedMediaType = Self(
        "unsupported-media-type", 415, "The body's media type is not supported")
    public static let rangeNotSatisfiable = Self("range-not-satisfiable", 416, "The range lies outside the content")
    public static let misdirectedRequest = Self("misdirected-request", 421, "The host is not served here")
    public static let idempotencyMismatch = Self(
        "idempotency-mismatch", 422, "The idempotency key belongs to another request")
    public static let idempotencyInProgress = Self(
        "idempotency-in-progress", 409, "The request with this idempotency key is still running")
    public static let appExists = Self("app-exists", 409, "The app exists")
    public static let sessionExists = Self("session-exists", 409, "The session exists")
    public static let cursorInvalid = Self("cursor-invalid", 409, "The position belongs to an earlier session")
    public static let configurationMismatch = Self(
        "configuration-mismatch", 409, "The session has another configuration")
    public static let sessionInvalidated = Self("session-invalidated", 409, "The session has been invalidated")
    public static let sessionInUse = Self("session-in-use", 409, "Another client is attached")
    public static let attachmentFenced = Self("attachment-fenced", 409, "Another client holds the attachment")
    public static let taskCompleted = Self("task-completed", 409, "The task is completed")
    public static let clientTaskConflict = Self(
        "client-task-conflict", 409, "The client's task identifier belongs to another task")
    public static let questionAnswered = Self("question-answered", 409, "The question has been answered")
    public static let resumeDataSpent = Self("resume-data-spent", 409, "The resume data has been used or has expired")
    public static let contentNotReady = Self("content-not-ready", 404, "The content is not complete yet")
    public static let contentExpired = Self("content-expired", 410, "The content has expired")
    public static let eventsExpired = Self("events-expired", 410, "Events have expired")
    public static let ackOutOfRange = Self("ack-out-of-range", 422, "There is no such event yet")
    public static let fetchLate = Self("fetch-late", 409, "The fetch is over")
    public static let refreshUnavailable = Self("refresh-unavailable", 409, "Background refresh is not available")
    public static let launchNotOpen = Self("launch-not-open", 409, "The launch is over")
    public static let setHasVersions = Self("set-has-versions", 409, "The set has versions")
    public static let setVersionExists = Self("set-version-exists", 409, "The name belongs to another version")
    public static let setVersionState = Self("set-version-state", 409, "The version's state does not allow this")
    public static let digestMismatch = Self("digest-mismatch", 422, "The digest does not match")
    public static let uploadOffsetMismatch = Self("upload-offset-mismatch", 409, "The upload is at another offset")
    public static let tooManyTasks = Self("too-many-tasks", 429, "There are too many tasks")
    public static let rateLimited = Self("rate-limited", 429, "There are too many requests")
    public static let insufficientStorage = Self("insufficient-storage", 507, "There is not enough storage")
    public static let contentsUnavailable = Self(
        "contents-unavailable", 503, "The bucket of contents cannot be reached")
    public static let storeUnavailable = Self(
        "store-unavailable", 503, "The database cannot be reached or took too long")
    public static let shuttingDown = Self("shutting-down", 503, "The service is shutting down")
    public static let internalError = Self("internal-error", 500, "The service failed")

    /// All codes, in the order of the documentation.
    public static let known: [ProblemCode] = [
        .malformedJSON, .duplicateMember, .unknownMember, .invalidValue, .unauthorized, .insufficientScope,
        .notFound, .methodNotAllowed, .notAcceptable, .requestTimeout, .lengthRequired, .preconditionFailed,
        .payloadTooLarge, .uriTooLong, .unsupportedMediaType, .rangeNotSatisfiable, .misdirectedRequest,
        .idempotencyMismatch, .idempotencyInProgress, .appExists, .sessionExists, .cursorInvalid,
        .configurationMismatch, .sessionInvalidated, .sessionInUse, .attachmentFenced, .taskCompleted,
        .clientTaskConflict, .questionAnswered, .resumeDataSpent, .contentNotReady, .contentExpired, .eventsExpired,
        .ackOutOfRange, .fetchLate, .refreshUnavailable, .launchNotOpen, .setHasVersions, .setVersionExists,
        .setVersionState, .digestMismatch, .uploadOffsetMismatch, .tooManyTasks,
        .rateLimited, .insufficientStorage, .contentsUnavailable, .storeUnavailable, .shuttingDown, .internalError,
    ]
}
