import Base
import Core
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

/// The positions of orders in the request's body, for errors that name an order by its index.
struct OrderPlaces: Sendable {
    /// A JSON Pointer to the order.
    var order: @Sendable (Int) -> String = { _ in "" }
    /// A JSON Pointer to the order's body.
    var body: @Sendable (Int) -> String = { _ in "/body" }

    /// A JSON Pointer to the name of a bucket.
    func bucket(_ index: Int, _ place: BucketPlace) -> String {
        switch place {
        case .request: order(index) + "/request/bucket"
        case .body: body(index) + "/bucket"
        case .destination: order(index) + "/destination/bucket"
        }
    }
}

extension Problem {
    /// The only mapping of errors to problems. Nil for errors whose details are only for the operator.
    init?(_ failure: Failure, _ places: OrderPlaces) {
        switch failure {
        case .domain(let error): self = Self.of(error, places)
        case .service(let error): self = Self.of(error, places)
        case .refused(let refused): self.init(refused)
        case .cancelled: self.init(.shuttingDown, "The service stopped before the request ended.")
        case .unexpected: return nil
        }
    }

    fileprivate init(_ refused: Metalink.Refused) {
        switch refused {
        case .malformed: self.init(.malformedJSON, refused.detail)
        case .invalid: self.init(.invalidValue, refused.detail)
        }
    }

    private init(_ refused: Refused) {
        switch (refused.event, refused.state) {
        case ("retry", _):
            self.init(.invalidValue, "Only a completed task can be retried; this one is \(refused.state).")
        case ("take", _): self = Self.of(DomainError.sessionInUse, OrderPlaces())
        case ("renew", _), ("release", _): self = Self.of(DomainError.attachmentFenced, OrderPlaces())
        default: self.init(.taskCompleted, "This is no longer possible: the task is \(refused.state).")
        }
    }

    /// A problem of one value of the request's body.
    private static func at(_ pointer: String, _ detail: String, _ code: ProblemCode = .invalidValue) -> Problem {
        Problem(
            code, pointer.isEmpty ? detail : "\(pointer): \(detail)", errors: [Entry(pointer: pointer, detail: detail)])
    }

    private static func configurationMismatch(_ names: [String]) -> Problem {
        Problem(
            .configurationMismatch,
            "The session was created with another configuration: \(names.joined(separator: ", ")).",
            errors: names.map { Entry(pointer: "/configuration/\($0)", detail: "The session has another value.") })
    }

    private static func of(_ error: DomainError, _ places: OrderPlaces) -> Problem {
        switch error {
        case .notFound: Problem(.notFound, "There is no such resource.")
        case .appExists: Problem(.appExists, "There is an app of this identifier.")
        case .sessionExists: Problem(.sessionExists, "There is a session of this identifier.")
        case .sessionInvalidated: Problem(.sessionInvalidated, "The session has been invalidated.")
        case .configurationMismatch(let names): configurationMismatch(names)
        case .clientTaskConflict(let index):
            at(
                places.order(index) + "/clientTaskId", "Another task of the session has this clientTaskId.",
                .clientTaskConflict)
        case .tooManyTasks(let limit, _):
            Problem(.tooManyTasks, "The app may have \(limit.counted("unfinished task")).")
        case .taskCompleted: Problem(.taskCompleted, "The task is completed.")
        case .acknowledgementOutOfRange(let lastSeq):
            at("/through", "The last event of the session is \(lastSeq).", .ackOutOfRange)
        case .eventsExpired(let oldestSeq):
            Problem(
                .eventsExpired, "Events after this position have expired; the oldest kept event is \(oldestSeq).",
                oldestSeq: oldestSeq)
        case .cursorInvalid(let incarnation, let lastSeq):
            Problem(
                .cursorInvalid,
                "The position belongs to an earlier incarnation of the session; the last event of this one is \(lastSeq).",
                incarnation: incarnation, lastSeq: lastSeq)
        case .attachmentFenced:
            Problem(.attachmentFenced, "Another client is or was attached; the request needs the current epoch.")
        case .sessionInUse: Problem(.sessionInUse, "Another client holds the session (-996).")
        case .questionAnswered: Problem(.questionAnswered, "The question is no longer open.")
        case .resumeDataSpent(let index):
            at(
                places.order(index) + "/resumeData", "The resume data has been used or has expired.",
                .resumeDataSpent)
        case .setHasVersions:
            Problem(.setHasVersions, "The set has versions: its destination and layout no longer change.")
        case .setDestinationTaken:
            at("/destination", "Another set has this destination, or one above or below it.")
        case .destinationOfSet(let index):
            at(places.order(index) + "/destination", "A set publishes its files here.")
        case .setLayoutNeedsFolder:
            at("/layout", "The layout hf-cache needs a destination with root and path.")
        case .setRepositoryTaken:
            at(
                "/source/repository",
                "A set with the layout hf-cache has one repository, whose folder no other set has.")
        case .setVersionExists:
            at("/version", "Another version of the set has this name; it is of another request.", .setVersionExists)
        case .setVersionState(let state):
            Problem(.setVersionState, "This is not possible: the version is \(state.rawValue).")
        case .launchNotOpen: Problem(.launchNotOpen, "The launch is completed or superseded.")
        case .fetchLate: Problem(.fetchLate, "The deadline of the fetch has passed.")
        case .refreshUnavailable(let why): Problem(.refreshUnavailable, why)
        case .bodyNotFound(let index): at(places.body(index) + "/id", "There is no such body.")
        case .contentNotFound(let index): at(places.body(index) + "/task", "That task has no content.")
        case .revisionMismatch: Problem(.preconditionFailed, "The resource has changed.")
        case .storedBytesExceeded:
            Problem(
                .insufficientStorage,
                "The app's limit of stored bytes is reached: delete bodies, or claim or acknowledge contents.")
        case .contentExpired: Problem(.contentExpired, "The content is no longer kept.")
        case .answeredMeanwhile:
            Problem(
                .idempotencyInProgress,
                "Another request with this Idempotency-Key was stored first. Send the request again.")
        }
    }

    private static func of(_ error: ServiceError, _ places: OrderPlaces) -> Problem {
        switch error {
        case .fileUnavailable(let index, let detail): at(places.body(index), detail)
        case .unknownRoot(let index, let name):
            at(places.order(index) + "/destination/root", "There is no root named \(name).")
        case .unknownBucket(let index, let name, let place):
            at(places.bucket(index, place), "There is no bucket named \(name).")
        case .contentUnavailable(let index): at(places.body(index) + "/task", "That task has no content to send.")
        case .resumeDataInvalid(let index): at(places.order(index) + "/resumeData", "This is not resume data.")
        case .invalidURL(let index, let detail): at(places.order(index ?? 0) + "/request/url", detail)
        case .insufficientStorage: Problem(.insufficientStorage, "The disk has no room for the request.")
        case .storeUnavailable: Problem(.storeUnavailable, "The database cannot be reached, or took too long.")
        case .contentsUnavailable:
            Problem(.contentsUnavailable, "The bucket of these bytes cannot be reached.")
        case .destinationUnavailable:
            Problem(
                .contentsUnavailable,
                "The destination does not show the version yet. The service tries again.")
        case .overloaded:
            Problem(.rateLimited, "Too many large bodies are being read; try again soon.", status: 503)
        case .shuttingDown: Problem(.shuttingDown, "The service is shutting down.")
        case .bodyTooLong(let limit): Problem(.payloadTooLarge, "A body may have \(limit.counted("byte")).")
        case .digestMismatch: Problem(.digestMismatch, "The bytes do not have the digest that was sent with them.")
        case .uploadOffsetMismatch(let offset):
            Problem(.uploadOffsetMismatch, "The draft has \(offset.counted("byte")).")
        case .collidingPaths(let path, let other):
            at(
                "/files",
                path == other
                    ? "The path \(path) occurs twice." : "\(path) is a file, so that \(other) cannot be below it.")
        }
    }

    /// The problem of a request to which the server responds in place of a handler.
    init(_ reason: RefusalReason) {
        switch reason {
        case .badFraming(let detail), .badTarget(let detail):
            self.init(.invalidValue, "The request is malformed: \(detail).", status: 400)
        case .undecodableTarget(let detail): self.init(.invalidValue, "The URL is not valid: \(detail).")
        case .unexpectedBody: self.init(.invalidValue, "This route accepts no body.", status: 400)
        case .notFound: self.init(.notFound, "There is no route with this path.")
        case .methodNotAllowed(let allow):
            self.init(.methodNotAllowed, "The resource supports \(allow.joined(separator: ", ")).")
        case .requestTimeout: self.init(.requestTimeout, "The request did not arrive in time.")
        case .targetTooLong: self.init(.uriTooLong, "The URL may have at most 8192 bytes.")
        case .headTooLarge:
            self.init(.invalidValue, "The header fields may have at most 32768 bytes in total.", status: 431)
        case .expectationFailed:
            self.init(.invalidValue, "The only supported expectation is 100-continue.", status: 417)
        case .shuttingDown: self.init(.shuttingDown, "The service is shutting down.")
        }
    }

    private var headers: [(String, String)] {
        switch code {
        case .unauthorized: [("WWW-Authenticate", "Bearer")]
        case .rateLimited, .idempotencyInProgress: [("Retry-After", "1")]
        case .shuttingDown, .storeUnavailable, .contentsUnavailable: [("Retry-After", "5")]
        case .tooManyTasks, .insufficientStorage: [("Retry-After", "30")]
        case .contentNotReady where status == 503: [("Retry-After", "5")]
        default: []
        }
    }

    func response(headers more: [(String, String)] = []) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: [("Content-Type", MediaTypes.problem)] + headers + more, body: .bytes(jsonBytes))
    }
}

extension APIServer {
    /// The problem for an error. The service's own faults are logged here and nowhere else.
    func problem(
        for error: any Error, of request: HTTPRequest, _ places: OrderPlaces = OrderPlaces()
    ) -> Problem {
        var problem: Problem
        switch error {
        case let error as Problem: problem = error
        case let error as JSONError: problem = Problem(error)
        case let error as Metalink.Refused: problem = Problem(error)
        case let error as RefusalReason: problem = Problem(error)
        case DomainError.notFound: problem = Problem(.notFound, request.absence)
        case is RequestStream.Failure:
            problem = Problem(.requestTimeout, "The body was incomplete, or arrived too slowly.")
        default:
            let failure = Failure(error)
            if let told = Problem(failure, places) {
                problem = told
            } else {
                if case .unexpected(let description) = failure {
                    log.error(
                        "a request failed", ("request", request.requestID), ("method", request.method),
                        ("path", request.path), ("error", description))
                }
                problem = Problem(.internalError, "The service failed; the operator's log has the details.")
            }
        }
        problem.instance = request.path
        return problem
    }
}

extension HTTPRequest {
    /// The target without its query, which may hold secrets.
    var path: String { APIServer.path(ofTarget: rawTarget) }

    fileprivate var absence: String {
        func named(_ kind: String, _ parameter: String) -> String? {
            parameters[parameter].map { "There is no \(kind) \"\($0)\"" }
        }
        if let session = parameters["identifier"], let task = parameters["taskIdentifier"] {
            return "There is no task \(task) in session \"\(session)\"."
        }
        if let set = parameters["name"], let version = parameters["version"] {
            let file = parameters["path"].map { "file \"\($0)\" in " } ?? ""
            return "There is no \(file)version \"\(version)\" of set \"\(set)\"."
        }
        if let app = parameters["app"], let key = named("key", "keyIdentifier") { return "\(key) of app \"\(app)\"." }
        let named =
            named("session", "identifier") ?? named("set", "name") ?? named("app", "app") ?? named("launch", "launchId")
            ?? named("question", "questionId") ?? named("credential", "credentialIdentifier") ?? named("body", "bodyId")
        return (named ?? "There is no such resource") + "."
    }
}
