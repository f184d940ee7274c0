/// What went wrong, as a word of a closed list that clients switch on.
public struct ProblemCode: WireName {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    /// What a problem's `type` begins with.
    public static let typePrefix = "https://urlsessiond.dev/problems/"

    /// The status that answers with this code have; 500 for an unknown code.
    public var status: Int { Self.table[self]?.status ?? 500 }
    /// A title for a person, always the same for a code.
    public var title: String { Self.table[self]?.title ?? rawValue }

    /// 400: the body is not JSON.
    public static let malformedJSON = ProblemCode(rawValue: "malformed-json")
    /// 422: a member stands twice.
    public static let duplicateMember = ProblemCode(rawValue: "duplicate-member")
    /// 422: there is no such member.
    public static let unknownMember = ProblemCode(rawValue: "unknown-member")
    /// 422: a value is not valid.
    public static let invalidValue = ProblemCode(rawValue: "invalid-value")
    /// 401: a valid key is needed.
    public static let unauthorized = ProblemCode(rawValue: "unauthorized")
    /// 403: the key does not allow this.
    public static let insufficientScope = ProblemCode(rawValue: "insufficient-scope")
    /// 404: there is no such resource.
    public static let notFound = ProblemCode(rawValue: "not-found")
    /// 405: the resource does not know this method.
    public static let methodNotAllowed = ProblemCode(rawValue: "method-not-allowed")
    /// 406: there is no acceptable representation.
    public static let notAcceptable = ProblemCode(rawValue: "not-acceptable")
    /// 408: the request took too long.
    public static let requestTimeout = ProblemCode(rawValue: "request-timeout")
    /// 411: the request needs a length.
    public static let lengthRequired = ProblemCode(rawValue: "length-required")
    /// 413: the body is too large.
    public static let payloadTooLarge = ProblemCode(rawValue: "payload-too-large")
    /// 414: the URL is too long.
    public static let uriTooLong = ProblemCode(rawValue: "uri-too-long")
    /// 415: the body's media type is not supported.
    public static let unsupportedMediaType = ProblemCode(rawValue: "unsupported-media-type")
    /// 416: the range lies outside the content.
    public static let rangeNotSatisfiable = ProblemCode(rawValue: "range-not-satisfiable")
    /// 421: the host is not served here.
    public static let misdirectedRequest = ProblemCode(rawValue: "misdirected-request")
    /// 412: a precondition does not hold.
    public static let preconditionFailed = ProblemCode(rawValue: "precondition-failed")
    /// 422: the idempotency key belongs to another request.
    public static let idempotencyMismatch = ProblemCode(rawValue: "idempotency-mismatch")
    /// 409: the request with this idempotency key is still running.
    public static let idempotencyInProgress = ProblemCode(rawValue: "idempotency-in-progress")
    /// 409: the app exists.
    public static let appExists = ProblemCode(rawValue: "app-exists")
    /// 409: the session exists.
    public static let sessionExists = ProblemCode(rawValue: "session-exists")
    /// 409: the place in the events is of an earlier session.
    public static let cursorInvalid = ProblemCode(rawValue: "cursor-invalid")
    /// 409: the session has another configuration.
    public static let configurationMismatch = ProblemCode(rawValue: "configuration-mismatch")
    /// 409: the session has been invalidated.
    public static let sessionInvalidated = ProblemCode(rawValue: "session-invalidated")
    /// 409: another client is attached.
    public static let sessionInUse = ProblemCode(rawValue: "session-in-use")
    /// 409: another client holds the attachment.
    public static let attachmentFenced = ProblemCode(rawValue: "attachment-fenced")
    /// 409: the task is completed.
    public static let taskCompleted = ProblemCode(rawValue: "task-completed")
    /// 409: the client's task identifier belongs to another task.
    public static let clientTaskConflict = ProblemCode(rawValue: "client-task-conflict")
    /// 409: the question has been answered.
    public static let questionAnswered = ProblemCode(rawValue: "question-answered")
    /// 409: the resume data has been used or has expired.
    public static let resumeDataSpent = ProblemCode(rawValue: "resume-data-spent")
    /// 410: the content has expired.
    public static let contentExpired = ProblemCode(rawValue: "content-expired")
    /// 410: events have expired.
    public static let eventsExpired = ProblemCode(rawValue: "events-expired")
    /// 422: there is no such event yet.
    public static let ackOutOfRange = ProblemCode(rawValue: "ack-out-of-range")
    /// 409: the fetch is over.
    public static let fetchLate = ProblemCode(rawValue: "fetch-late")
    /// 409: background refresh is not available.
    public static let refreshUnavailable = ProblemCode(rawValue: "refresh-unavailable")
    /// 409: the launch is over.
    public static let launchNotOpen = ProblemCode(rawValue: "launch-not-open")
    /// 422: the digest does not match.
    public static let digestMismatch = ProblemCode(rawValue: "digest-mismatch")
    /// 409: the upload is at another offset.
    public static let uploadOffsetMismatch = ProblemCode(rawValue: "upload-offset-mismatch")
    /// 429: there are too many tasks.
    public static let tooManyTasks = ProblemCode(rawValue: "too-many-tasks")
    /// 429: there are too many requests.
    public static let rateLimited = ProblemCode(rawValue: "rate-limited")
    /// 507: there is not enough storage.
    public static let insufficientStorage = ProblemCode(rawValue: "insufficient-storage")
    /// 503: the service is shutting down.
    public static let shuttingDown = ProblemCode(rawValue: "shutting-down")
    /// 500: something went wrong.
    public static let internalError = ProblemCode(rawValue: "internal-error")

    /// All codes, in the order of the documentation.
    public static let known: [ProblemCode] = [
        .malformedJSON, .duplicateMember, .unknownMember, .invalidValue, .unauthorized, .insufficientScope,
        .notFound, .methodNotAllowed, .notAcceptable, .requestTimeout, .lengthRequired, .payloadTooLarge,
        .uriTooLong, .unsupportedMediaType, .rangeNotSatisfiable, .misdirectedRequest, .preconditionFailed,
        .idempotencyMismatch, .idempotencyInProgress, .appExists, .sessionExists, .cursorInvalid,
        .configurationMismatch, .sessionInvalidated, .sessionInUse, .attachmentFenced, .taskCompleted,
        .clientTaskConflict, .questionAnswered, .resumeDataSpent, .contentExpired, .eventsExpired, .ackOutOfRange,
        .fetchLate,
        .refreshUnavailable, .launchNotOpen, .digestMismatch, .uploadOffsetMismatch, .tooManyTasks, .rateLimited,
        .insufficientStorage, .shuttingDown, .internalError,
    ]

    private static let table: [ProblemCode: (status: Int, title: String)] = [
        .malformedJSON: (400, "The body is not JSON"),
        .duplicateMember: (422, "A member stands twice"),
        .unknownMember: (422, "There is no such member"),
        .invalidValue: (422, "A value is not valid"),
        .unauthorized: (401, "A valid key is needed"),
        .insufficientScope: (403, "The key does not allow this"),
        .notFound: (404, "There is no such resource"),
        .methodNotAllowed: (405, "The resource does not know this method"),
        .notAcceptable: (406, "There is no acceptable representation"),
        .requestTimeout: (408, "The request took too long"),
        .lengthRequired: (411, "The request needs a length"),
        .payloadTooLarge: (413, "The body is too large"),
        .uriTooLong: (414, "The URL is too long"),
        .unsupportedMediaType: (415, "The body's media type is not supported"),
        .rangeNotSatisfiable: (416, "The range lies outside the content"),
        .misdirectedRequest: (421, "The host is not served here"),
        .preconditionFailed: (412, "A precondition does not hold"),
        .idempotencyMismatch: (422, "The idempotency key belongs to another request"),
        .idempotencyInProgress: (409, "The request with this idempotency key is still running"),
        .appExists: (409, "The app exists"),
        .sessionExists: (409, "The session exists"),
        .cursorInvalid: (409, "The place in the events is of an earlier session"),
        .configurationMismatch: (409, "The session has another configuration"),
        .sessionInvalidated: (409, "The session has been invalidated"),
        .sessionInUse: (409, "Another client is attached"),
        .attachmentFenced: (409, "Another client holds the attachment"),
        .taskCompleted: (409, "The task is completed"),
        .clientTaskConflict: (409, "The client's task identifier belongs to another task"),
        .questionAnswered: (409, "The question has been answered"),
        .resumeDataSpent: (409, "The resume data has been used or has expired"),
        .contentExpired: (410, "The content has expired"),
        .eventsExpired: (410, "Events have expired"),
        .ackOutOfRange: (422, "There is no such event yet"),
        .fetchLate: (409, "The fetch is over"),
        .refreshUnavailable: (409, "Background refresh is not available"),
        .launchNotOpen: (409, "The launch is over"),
        .digestMismatch: (422, "The digest does not match"),
        .uploadOffsetMismatch: (409, "The upload is at another offset"),
        .tooManyTasks: (429, "There are too many tasks"),
        .rateLimited: (429, "There are too many requests"),
        .insufficientStorage: (507, "There is not enough storage"),
        .shuttingDown: (503, "The service is shutting down"),
        .internalError: (500, "Something went wrong"),
    ]
}
