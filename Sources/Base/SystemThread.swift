import CLinux
import Glibc

/// A named POSIX thread with all signals blocked, so that they reach the thread that waits for them, and a write to a
/// closed socket is an error instead of `SIGPIPE`. Fault signals are not blocked.
package struct SystemThread: Sendable {
    private let id: pthread_t

    /// Starts a thread that runs `body` and ends with it. It must be joined or detached.
    ///
    /// - Parameters:
    ///   - name: As shown by `ps` and `top`, at most 15 bytes.
    ///   - stackSize: In bytes; `nil` for the system's default.
    package init(
        _ name: String, stackSize: Int? = nil, _ body: sending @escaping () -> Void
    ) throws(SystemError) {
        // Retained for the thread, which releases it when it receives the body.
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

    package static func start(
        _ name: String, stackSize: Int? = nil, _ body: sending @escaping () -> Void
    ) throws(SystemError) {
        try SystemThread(name, stackSize: stackSize, body).letGo()
    }

    /// Waits until the thread has ended. If the thread calls it for itself, it is detached instead.
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
