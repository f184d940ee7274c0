import CLinux
import Glibc

/// A POSIX thread with a name and all signals blocked, so that they reach the thread that waits for them, and so that
/// writing to a closed socket is an error instead of `SIGPIPE`. Those of faults are not blocked.
package enum SystemThread {
    /// Starts a detached thread.
    ///
    /// - Parameter stackSize: In bytes; nil for the system's own.
    package static func start(
        _ name: String, stackSize: Int? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
        let box = Unmanaged.passRetained(
            Box {
                _ = pthread_setname_np(pthread_self(), name)
                body()
            })
        var thread = pthread_t()
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackSize { pthread_attr_setstacksize(&attributes, stackSize) }
        let code = pthread_create(&thread, &attributes, runBox, box.toOpaque())
        guard code == 0 else {
            box.release()
            throw SystemError("pthread_create", errno: code)
        }
        pthread_detach(thread)
    }

    fileprivate final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
}

private func runBox(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    clinux_block_signals()
    clinux_use_signal_stack()
    Unmanaged<SystemThread.Box>.fromOpaque(context).takeRetainedValue().body()
    return nil
}
