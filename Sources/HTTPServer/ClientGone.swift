import Base

/// Tells the handler of a request that waiting has no more use: the client left, the server stops, or the client may no
/// longer make the request.
///
/// The server looks after requests that run longer than a moment, and notices a client that closed its connection
/// within a quarter of a second. When the server stops, an answer still reaches the client.
package final class ClientGone: Sendable {
    package enum Reason: Sendable, Equatable {
        case left
        case serverStops
        /// What the client was let in with is not valid any more.
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

    /// Runs `callback` once, on a thread of the server, when waiting has no more use; at once if that is already so.
    /// It must be short and must not block.
    package func onGone(_ callback: @escaping @Sendable () -> Void) {
        let isLate = state.withLock {
            if $0.reason == nil { $0.callbacks.append(callback) }
            return $0.reason != nil
        }
        if isLate { callback() }
    }

    /// Ends the waiting of a client that is no longer let in. The handler refuses the request.
    package func revoke() { fire(.revoked) }

    /// Forgets who waited, when the request is over.
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
