import Base
import Core
import HTTPServer

/// The requests in flight, by their callers. The revocation of a key ends the requests that it admitted.
final class Admissions: Sendable {
    private struct State {
        var last: UInt64 = 0
        /// Rises with each revocation, so that a key that was read before admits no request afterwards.
        var revocations: UInt64 = 0
        var requests: [UInt64: (caller: Caller, client: ClientGone)] = [:]
    }

    private let state = Locked(State())

    var revocations: UInt64 { state.withLock { $0.revocations } }

    var callers: Set<Caller> { state.withLock { Set($0.requests.values.map(\.caller)) } }

    /// Admits a request; `nil` if a key was revoked since `revocations` was read, which may be the caller's.
    func admit(_ caller: Caller, _ client: ClientGone, since revocations: UInt64) -> Hold? {
        let number = state.withLock { state -> UInt64? in
            guard state.revocations == revocations else { return nil }
            state.last += 1
            state.requests[state.last] = (caller, client)
            return state.last
        }
        return number.map { number in
            Hold { [self] in state.withLock { _ = $0.requests.removeValue(forKey: number) } }
        }
    }

    /// Ends the requests of the callers for which `isRevoked` is true.
    func revoke(where isRevoked: (Caller) -> Bool) {
        let clients = state.withLock { state in
            state.revocations += 1
            return state.requests.values.filter { isRevoked($0.caller) }.map(\.client)
        }
        for client in clients { client.revoke() }
    }
}

extension APIServer {
    /// The period in which the keys of the requests in flight are checked again.
    private static let judgementPeriod = Duration.seconds(1)

    /// Ends requests in flight when their key expires, or is revoked at another node, until it is cancelled. A key that
    /// is revoked here ends its requests at once.
    package func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: Self.judgementPeriod)
            for caller in admissions.callers where await !authenticator.stillAdmits(caller) {
                admissions.revoke { $0 == caller }
            }
        }
    }

    /// Refuses a revoked key, and ends the requests that it admitted.
    func keyRevoked(_ keyIdentifier: String) {
        authenticator.keyChanged(keyIdentifier)
        admissions.revoke { if case .app(_, keyIdentifier, _) = $0 { true } else { false } }
    }

    /// Refuses the keys of a deleted app, and ends the requests that they admitted.
    func appDeleted(_ app: AppID) {
        authenticator.allKeysChanged()
        admissions.revoke { if case .app(app, _, _) = $0 { true } else { false } }
    }
}
