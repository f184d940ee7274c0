import CLinux
import Glibc

/// A POSIX thread with a name and all signals blocked, so that they reach the thread that waits for them, and so that
/// writing to a closed socket is an error instead of `SIGPIPE`. Those of faults are not blocked.
package struct SystemThread: Sendable {
    private let id: pthread_t

    /// Starts a thread that runs `body` and ends with it. It has to be joined or let go.
    ///
    /// - Parameters:
    ///   - name: As `ps` and `top` show it, 15 bytes of it.
    ///   - stackSize: In bytes; nil for the system's own.
    package init(
        _ name: String, stackSize: Int? = nil, _ body: sending @escaping () -> Void
    ) throws(SystemError) {
        // Retained for the thread, which releases it when it takes the body.
        let start = Unmanaged.passRetained(Start(name: name, body: body))
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
        let code = pthread_create(&thread, &attributes, run, start.toOpaque())
        guard code == 0 else {
            start.release()
            throw SystemError("pthread_create", errno: code)
        }
        id = thread
    }

    /// Starts a thread that is never joined.
    package static func start(
        _ name: String, stackSize: Int? = nil, _ body: sending @escaping () -> Void
    ) throws(SystemError) {
        try SystemThread(name, stackSize: stackSize, body).letGo()
    }

    /// Waits until the thread has ended. The thread itself, asked to wait for itself, is let go instead.
    package func join() {
        if pthread_equal(id, pthread_self()) != 0 { letGo() } else { pthread_join(id, nil) }
    }

    /// Detaches the thread: it will not be joined.
    package func letGo() { pthread_detach(id) }

    fileprivate final class Start {
        let name: String
        let body: () -> Void

        init(name: String, body: @escaping () -> Void) {
            self.name = name
            self.body = body
        }
    }
}

private func run(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    let start = Unmanaged<SystemThread.Start>.fromOpaque(context).takeRetainedValue()
    _ = pthread_setname_np(pthread_self(), String(start.name.prefix(15)))
    clinux_block_signals()
    clinux_use_signal_stack()
    start.body()
    return nil
}
