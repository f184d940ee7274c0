package import Base
import Core
package import HTTPServer
package import Launches
package import Service
import Wire

/// The API: turns HTTP requests into calls of the service, and their results into responses.
package final class APIServer: Sendable {
    package let settings: APISettings
    package let service: Service
    package let launches: Launches
    package let metrics: Metrics
    package let log: Log
    let authenticator: Authenticator
    let idempotencyKeys: IdempotencyKeys
    let cursors: CursorSeal
    let held: HeldRequests
    let limiter: RateLimiter?
    let admissions = Admissions()
    let bodies: MemoryBudget
    /// Events read for streams whose clients have not received them yet.
    let streamed = MemoryBudget(bytes: 32 << 20)
    /// Bytes of unfinished downloads whose clients have not received them yet.
    let arriving = MemoryBudget(bytes: 32 << 20)
    let shownTasks = ShownTasks()
    /// Set at the end of `init`: the routes, which label the metrics, need the other members.
    private let requests = Locked<RequestMeters?>(nil)

    package init(settings: APISettings, service: Service, launches: Launches, metrics: Metrics, log: Log) {
        self.settings = settings
        self.service = service
        self.launches = launches
        self.metrics = metrics
        self.log = log
        authenticator = Authenticator(service: service, settings: settings)
        idempotencyKeys = IdempotencyKeys(service: service)
        cursors = CursorSeal(key: settings.cursorKey)
        held = HeldRequests(limit: settings.heldRequestsPerKey)
        bodies = MemoryBudget(bytes: settings.sharedBodyBytes)
        limiter = settings.rateLimit.map { RateLimiter(perSecond: $0, clock: service.clock) }
        let meters = RequestMeters(metrics, routes: Set(routes.map(\.pattern)), held: held)
        requests.withLock { $0 = meters }
    }

    package var routes: [Route] {
        [
            appRoutes, ownAppRoutes, cacheRoutes, sessionRoutes, taskRoutes, batchRoutes, eventRoutes, attachmentRoutes,
            systemRoutes, indexRoutes, nodeRoutes, pageRoutes,
            bodyRoutes, contentRoutes, setRoutes, launchRoutes, questionRoutes, credentialRoutes, refreshRoutes,
            conditionsRoutes,
        ].flatMap { $0 }
    }

    package var router: Router { Router(routes, options: options) }

    /// The routes of a node that serves no other requests.
    package var ownRouter: Router { Router(systemRoutes + nodeRoutes, options: options) }

    package func adminKeyChanged(hash: [UInt8]) {
        authenticator.adminKeyChanged(hash: hash)
        admissions.revoke { $0 == .operator }
    }

    package func observe(_ observation: Observation) {
        requests.withLock { $0 }?.count(observation)
        guard log.shows(.debug) else { return }
        log.debug(
            "request answered", ("request", observation.requestID), ("method", observation.method),
            ("path", Self.path(ofTarget: observation.target)), ("status", observation.status),
            ("milliseconds", observation.duration.milliseconds))
    }

    /// The response that the server sends in place of a handler.
    package func refuse(_ reason: RefusalReason, _ target: String, _ requestID: String) -> HTTPResponse {
        var problem = Problem(reason)
        problem.instance = Self.path(ofTarget: target)
        return problem.response()
    }

    /// A target without its query, which may hold secrets.
    static func path(ofTarget target: String) -> String { String(target.prefix { $0 != "?" }) }

    /// Adds the header fields that every response carries.
    package func adorn(_ request: HTTPRequest, _ response: inout HTTPResponse) {
        response.headers.append(("X-Content-Type-Options", "nosniff"))
        if !response.headers.contains(where: { $0.0 == "Cache-Control" }) {
            response.headers.append(("Cache-Control", "no-cache"))
        }
        guard !settings.corsOrigins.isEmpty else { return }
        response.headers.append(("Vary", "Origin"))
        guard let origin = allowedOrigin(of: request) else { return }
        response.headers.append(("Access-Control-Allow-Origin", origin))
        response.headers.append(
            (
                "Access-Control-Expose-Headers",
                "Accept-Ranges, Allow, Content-Disposition, Content-Range, ETag, Idempotency-Replayed, Link, Location, "
                    + "RateLimit, RateLimit-Policy, Repr-Digest, Retry-After, Upload-Complete, Upload-Length, "
                    + "Upload-Offset, WWW-Authenticate, X-Request-Id"
            ))
    }

    /// Responds to `OPTIONS`, a browser's preflight included.
    private func options(_ request: HTTPRequest, _ allow: [String]) -> HTTPResponse {
        var headers = [("Allow", allow.joined(separator: ", "))]
        if allowedOrigin(of: request) != nil, request.headers["Access-Control-Request-Method"] != nil {
            headers.append(("Access-Control-Allow-Methods", allow.joined(separator: ", ")))
            headers.append(
                (
                    "Access-Control-Allow-Headers",
                    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, "
                        + "Range, If-Range, Content-Digest, Repr-Digest, Upload-Complete, Upload-Length, Upload-Offset, "
                        + "Want-Repr-Digest, X-Request-Id, traceparent"
                ))
            headers.append(("Access-Control-Max-Age", "600"))
        }
        return HTTPResponse(status: 204, headers: headers)
    }

    private func allowedOrigin(of request: HTTPRequest) -> String? {
        guard let origin = request.headers["Origin"] else { return nil }
        let isAllowed = settings.corsOrigins.contains { $0 == "*" || $0.utf8.elementsEqual(origin.utf8) }
        return isAllowed ? origin : nil
    }
}
