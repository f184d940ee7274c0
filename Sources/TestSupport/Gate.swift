import Base
import Glibc

/// Holds back requests at an origin or a receiver, or threads, until the test opens it.
package final class Gate: Sendable {
    private let state = Locked<(opened: Bool, waiting: Int)>((false, 0))

    package init() {}

    package func open() { state.withLock { $0.opened = true } }

    package func close() { state.withLock { $0.opened = false } }

    package var isOpen: Bool { state.withLock { $0.opened } }

    /// How many requests and threads are held now.
    package var waiting: Int { state.withLock { $0.waiting } }

    /// Keeps the thread it is called on until the gate opens. For threads that may block.
    package func pass() {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        let deadline = ContinuousClock.now + .seconds(600)
        while !isOpen {
            precondition(ContinuousClock.now < deadline, "the gate was not opened")
            usleep(1000)
        }
    }

    /// Waits until the gate opens. False when the peer hung up first.
    func wait(_ socket: Socket) -> Bool {
        state.withLock { $0.waiting += 1 }
        defer { state.withLock { $0.waiting -= 1 } }
        while !isOpen {
            if socket.waitForHangUp(atMost: .milliseconds(10)) { return false }
        }
        return true
    }
}
