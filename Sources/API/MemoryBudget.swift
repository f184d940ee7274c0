import Base

/// Memory that all requests share, with room left for apps that hold none of it yet.
///
/// A caller may hold as much as is left for the others: alone half of it, two callers a third each. A caller with a
/// full share therefore never blocks the others.
final class MemoryBudget: Sendable {
    private struct State {
        var left: Int
        /// Bytes held, by ``Caller/principal``.
        var held: [String: Int] = [:]

        func hasRoom(for more: Int, of principal: String) -> Bool { held[principal, default: 0] + more <= left - more }

        mutating func move(_ bytes: Int, to principal: String) {
            left -= bytes
            let now = held[principal, default: 0] + bytes
            held[principal] = now == 0 ? nil : now
        }
    }

    private let state: Locked<State>

    init(bytes: Int) { state = Locked(State(left: bytes)) }

    /// Bytes that no share holds.
    var left: Int { state.withLock { $0.left } }

    func share(of principal: String) -> Share { Share(self, principal) }

    /// The memory held by one request, released when the share is destroyed.
    final class Share: Sendable {
        private let budget: MemoryBudget
        private let principal: String
        private let bytes = Locked(0)

        fileprivate init(_ budget: MemoryBudget, _ principal: String) {
            self.budget = budget
            self.principal = principal
        }

        deinit {
            let bytes = bytes.withLock { $0 }
            budget.state.withLock { $0.move(-bytes, to: principal) }
        }

        /// Whether so many more bytes could be held now. Holds none of them.
        func hasRoom(for bytes: Int) -> Bool { budget.state.withLock { $0.hasRoom(for: bytes, of: principal) } }

        /// Holds `total` bytes from now on. Changes nothing if there is no room for more.
        ///
        /// - Returns: Whether the bytes are held.
        func hold(_ total: Int) -> Bool {
            bytes.withLock { bytes in
                let more = total - bytes
                let isThere = budget.state.withLock { state in
                    guard more <= 0 || state.hasRoom(for: more, of: principal) else { return false }
                    state.move(more, to: principal)
                    return true
                }
                if isThere { bytes = total }
                return isThere
            }
        }
    }
}
