import Base
import Glibc
import HTTPServer
import TestSupport

/// Serves `routes` on a free port while `body` runs.
func withServer<Result>(
    _ routes: [Route], limits: ServerLimits = ServerLimits(), seen: Locked<[Observation]> = Locked([]),
    _ body: (HTTPServer) async throws -> Result
) async throws -> Result {
    let server = try HTTPServer.start(
        on: Listener(address: "127.0.0.1", port: 0), limits: limits, router: Router(routes), refusal: plainRefusal,
        log: .none,
        observe: { observation in seen.withLock { $0.append(observation) } })
    do {
        let result = try await body(server)
        await server.stop(within: .seconds(5))
        return result
    } catch {
        await server.stop(within: .seconds(5))
        throw error
    }
}

let plainRefusal: HTTPServer.Refusal = { reason, _, _ in
    HTTPResponse(
        status: reason.status, headers: [("Content-Type", "text/plain")], body: .bytes(Array("\(reason)".utf8)))
}

extension RefusalReason {
    fileprivate var status: Int {
        switch self {
        case .badFraming, .badTarget, .unexpectedBody: 400
        case .notFound: 404
        case .methodNotAllowed: 405
        case .requestTimeout: 408
        case .targetTooLong: 414
        case .undecodableTarget: 422
        case .expectationFailed: 417
        case .headTooLarge: 431
        case .shuttingDown: 503
        }
    }
}

extension Route {
    /// A route whose handler gets the complete body.
    static func whole(
        _ method: String, _ pattern: String, executor: Executor? = nil, _ handler: @escaping Handler
    ) -> Route {
        Route(method, pattern, body: .stream, executor: executor) { request in
            guard case .stream(let stream) = request.body else { return text("no stream", status: 500) }
            var request = request
            var bytes: [UInt8] = []
            do {
                while let more = try await stream.next() { bytes += more }
            } catch {
                return text("\(error)", status: 500)
            }
            request.body = .bytes(bytes)
            return await handler(request)
        }
    }
}

func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, headers: [("Content-Type", "text/plain")], body: .bytes(Array(text.utf8)))
}

/// Waits until `condition` holds, for at most a minute. Returns whether it held.
func eventually(_ condition: () -> Bool) async -> Bool {
    (try? await TestSupport.eventually(within: .seconds(60)) { condition() }) != nil
}

/// Waits until `condition` holds, for at most a minute, on a thread that may block. Returns whether it held.
func blockingUntil(_ condition: () -> Bool) -> Bool {
    let end = Clock.system.monotonic() + 60_000
    while Clock.system.monotonic() < end {
        if condition() { return true }
        usleep(2000)
    }
    return condition()
}

/// Waits on a thread that may block until `value` has not changed for `milliseconds`, and returns it.
func settledValue<Value: Equatable>(for milliseconds: Int64, _ value: () -> Value) -> Value {
    var last = value()
    var since = Clock.system.monotonic()
    while Clock.system.monotonic() < since + milliseconds {
        usleep(5000)
        let now = value()
        if now != last { (last, since) = (now, Clock.system.monotonic()) }
    }
    return last
}

extension ClientGone {
    /// Waits until the client has disconnected or the server stops.
    func wait() async { await withCheckedContinuation { continuation in onGone { continuation.resume() } } }
}

extension Locked {
    /// A copy of the value.
    func read() -> Value where Value: Sendable { withLock { $0 } }
}
