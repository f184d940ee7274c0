import Synchronization

/// The session objects of a client in this process by identifier, so that a launch finds its session.
///
/// Copies of a client share it.
final class OpenSessions: Sendable {
    private struct Entry {
        weak var session: BackgroundSession?
    }

    private let entries = Mutex<[String: Entry]>([:])

    /// Of several objects with one identifier the latest counts.
    func add(_ session: BackgroundSession) { entries.withLock { $0[session.identifier] = Entry(session: session) } }

    func remove(_ session: BackgroundSession) {
        entries.withLock { entries in
            if entries[session.identifier]?.session === session { entries[session.identifier] = nil }
        }
    }

    subscript(identifier: String) -> BackgroundSession? { entries.withLock { $0[identifier]?.session } }
}
