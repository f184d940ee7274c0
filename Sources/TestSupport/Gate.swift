import Base
import Glibc

/// Holds requests at an origin or a receiver, or threads, until the test opens it.
package final class Gate: Sendable {
    private let state = Locked<(opened: Bool, waiting: Int)>((false, 0))

    package init() {}

    package func open() { state.withLock { $0.opened = true } }

    package func close() { state.withLock { $0.opened = false } }

    package var isOpen: Bool { state.withLock { $0.opened } }

    /// The number of held requests and threads.
    package var waiting: Int { state.withLock { $0.waiting } }

    /// Blocks the calling thread until the gate opens. Only for threads that may block.
    package func pass() {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        let deadline = ContinuousClock.now + .seconds(600)
        while !isOpen {
            precondition(ContinuousClock.now < deadline, "the gate was not opened")
            usleep(1000)
        }
    }

    /// Waits until the gate opens. False if the peer disconnected first.
    func wait(_ socket: Socket) -> Bool {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        while !isOpen {
            if socket.waitForHangUp(atMost: .milliseconds(10)) { return false }
        }
        return true
    }
}
