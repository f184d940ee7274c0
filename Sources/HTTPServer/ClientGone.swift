import Base

/// Tells the handler of a request that waiting is useless: the client left, the server stops, or the client's access
/// was revoked.
///
/// The server watches requests that last longer than a moment, and notices a closed connection within a quarter of a
/// second. When the server stops, a response still reaches the client.
package final class ClientGone: Sendable {
    package enum Reason: Sendable, Equatable {
        case left
        case serverStops
        /// The client's access is not valid any more.
        case revoked
    }

    private struct State: Sendable {
        var reason: Reason?
        var callbacks: [@Sendable () -> Void] = []
    }

    private let state = Locked(State())

    package init() {}

    package var reason: Reason? { state.withLock { $0.reason } }
    package var isGone: Bool { reason != nil }

    /// Calls `callback` once, on a thread of the server, when waiting becomes useless; at once if it already is. The
    /// callback must be short and must not block.
    package func onGone(_ callback: @escaping @Sendable () -> Void) {
        let isLate = state.withLock {
            if $0.reason == nil { $0.callbacks.append(callback) }
            return $0.reason != nil
        }
        if isLate { callback() }
    }

    /// Ends the wait of a client whose access was revoked. The handler refuses the request.
    package func revoke() { fire(.revoked) }

    /// Discards the callbacks at the end of the request.
    func ended() {
        state.withLock { $0.callbacks = [] }
    }

    func fire(_ reason: Reason) {
        let callbacks = state.withLock { state in
            guard state.reason == nil else { return [@Sendable () -> Void]() }
            state.reason = reason
            return state.callbacks.takeAll()
        }
        for callback in callbacks { callback() }
    }
}
