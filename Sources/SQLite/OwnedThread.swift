import Glibc

/// A thread of our own, so that a slow disk never blocks one of Swift's pool.
struct OwnedThread: Sendable {
    private let id: pthread_t

    /// Starts a thread that runs `body` and ends with it.
    ///
    /// - Parameter name: At most 15 bytes, as the kernel shows it.
    init(_ name: String, _ body: sending @escaping () -> Void) {
        var id = pthread_t()
        // Retained for the thread, which releases it when it takes the body.
        let context = Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
        let code = pthread_create(
            &id, nil,
            { context in
                guard let context else { return nil }
                let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
                OwnedThread.name(start.name)
                start.body()
                return nil
            }, context)
        precondition(code == 0, "pthread_create: \(code)")
        self.id = id
    }

    /// Waits until the thread has ended. The thread itself, asked to wait for itself, is let go instead.
    func join() {
        if pthread_equal(id, pthread_self()) != 0 { pthread_detach(id) } else { pthread_join(id, nil) }
    }

    /// Says that nobody will wait for the thread.
    func letGo() { pthread_detach(id) }

    /// Names the calling thread for `ps` and `top`. (`pthread_setname_np` is not in Swift's Glibc.)
    private static func name(_ name: String) {
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        _ = write(file, name, name.utf8.count)
        close(file)
    }

    private final class Start {
        let name: String
        let body: () -> Void

        init(name: String, body: @escaping () -> Void) {
            self.name = name
            self.body = body
        }
    }
}
