import Base
package import Core
import Store
import TransferEngine

/// The cookies of the sessions with transfers: read once, and stored by the commit that follows a change.
///
/// A reset bypasses the scheduler, hence the lock.
package final class CookieJars: Sendable {
    private struct Entry {
        var jar: CookieJar
        /// The lines as they were last read or stored.
        var stored: [String] = []
        /// Transfers that use the jar.
        var uses = 0
    }

    private struct State {
        var entries: [SessionID: Entry] = [:]
        /// Sessions whose jar differs from the stored one.
        var changed: Set<SessionID> = []
    }

    /// Maximum number of jars of sessions without transfers.
    private let maximumIdle: Int
    private let state = Locked(State())

    /// - Parameter isShared: Whether other nodes may change the stored jars.
    package init(isShared: Bool = false) { maximumIdle = isShared ? 0 : 4096 }

    /// Whether the next transfer of a session needs no read.
    func have(_ session: SessionID) -> Bool {
        state.withLock { $0.entries[session].map { $0.uses > 0 || maximumIdle > 0 } ?? false }
    }

    /// Caches the stored lines of a jar for ``hold(_:_:)``.
    func remember(_ lines: [String], of session: SessionID) {
        state.withLock { state in
            // A reset since the read takes precedence, and cookies that transfers have received.
            guard state.entries[session]?.uses ?? 0 == 0, !state.changed.contains(session) else { return }
            state.entries[session] = Entry(jar: CookieJar(lines: lines), stored: lines)
        }
    }

    /// Keeps a session's jar in memory for one more transfer.
    func hold(_ session: SessionID, _ store: Store) async throws {
        let isKnown = state.withLock { state in
            state.entries[session]?.uses += 1
            return state.entries[session] != nil
        }
        if isKnown { return }
        let lines = try await store.sessions.cookies(of: session)
        state.withLock { state in
            // A reset during the read takes precedence.
            state.entries[session, default: Entry(jar: CookieJar(lines: lines), stored: lines)].uses += 1
        }
    }

    func letGo(_ session: SessionID) {
        state.withLock { state in
            state.entries[session]?.uses -= 1
            guard state.entries.count > maximumIdle else { return }
            let changed = state.changed
            state.entries = state.entries.filter { $0.value.uses > 0 || changed.contains($0.key) }
        }
    }

    func lines(of session: SessionID, for host: String, at now: Timestamp) -> [String] {
        state.withLock { $0.entries[session]?.jar.lines(for: host, at: now) ?? [] }
    }

    func merge(
        _ session: SessionID, given: [String], returned: [String], accepts: Bool, at now: Timestamp
    ) {
        state.withLock { state in
            guard var entry = state.entries.removeValue(forKey: session) else { return }
            if entry.jar.merge(given: given, returned: returned, accepts: accepts, at: now) {
                state.changed.insert(session)
            }
            state.entries[session] = entry
        }
    }

    /// Empties a session's jar. Cookies that transfers in flight were given do not come back.
    package func empty(_ session: SessionID) {
        state.withLock { state in
            state.entries[session, default: Entry(jar: CookieJar())].jar = CookieJar()
            state.changed.insert(session)
        }
    }

    var haveChanged: Bool { state.withLock { !$0.changed.isEmpty } }

    /// The changes to store; ``putBack(_:)`` if that fails.
    func takeChanged() -> [SessionID: CookieChange] {
        state.withLock { state in
            var changes: [SessionID: CookieChange] = [:]
            for session in state.changed {
                guard let entry = state.entries[session] else { continue }
                changes[session] = CookieChange(before: entry.stored, after: entry.jar.lines)
                state.entries[session]?.stored = entry.jar.lines
            }
            state.changed = []
            return changes
        }
    }

    func putBack(_ changes: [SessionID: CookieChange]) {
        state.withLock { state in
            for (session, change) in changes {
                state.entries[session, default: Entry(jar: CookieJar(lines: change.after))].stored = change.before
                state.changed.insert(session)
            }
        }
    }

    /// Reads a session's jar again: another node may have emptied it. A local change that is not stored yet is kept.
    func refresh(_ session: SessionID, _ store: Store) async throws {
        guard state.withLock({ $0.entries[session] != nil }) else { return }
        let lines = try await store.sessions.cookies(of: session)
        state.withLock { state in
            guard !state.changed.contains(session), state.entries[session] != nil else { return }
            state.entries[session]?.jar = CookieJar(lines: lines)
            state.entries[session]?.stored = lines
        }
    }
}

extension Scheduler {
    /// Reads a session's jar again. If this fails, cookies that another node has removed are still sent.
    func refreshCookies(of session: SessionID) async {
        do {
            try await cache.cookies.refresh(session, store)
        } catch {
            log.warning(
                "the cookies of a session could not be read again", ("row", session.rawValue), ("error", "\(error)"))
        }
    }

    /// The cookies for a transfer's next request; nil if the session accepts none.
    func cookies(of transfer: Transfer, for url: ParsedURL) -> [String]? {
        guard transfer.configuration.httpCookieAcceptPolicy != .never else { return nil }
        return cache.cookies.lines(of: transfer.task.session, for: url.host, at: clock.now)
    }

    /// Adopts the cookies of a response if the session's policy accepts them.
    func noteCookies(of transfer: Transfer, _ exchange: Exchanges.Running, _ result: ExchangeResult) {
        guard let given = exchange.cookies, result.cookies != given else { return }
        let accepts =
            switch transfer.configuration.httpCookieAcceptPolicy {
            case .always: true
            case .never: false
            case .onlyFromMainDocumentDomain: PublicSuffixes.areRelated(transfer.taskURL, exchange.url)
            }
        cache.cookies.merge(
            transfer.task.session, given: given, returned: result.cookies, accepts: accepts, at: clock.now)
    }
}
