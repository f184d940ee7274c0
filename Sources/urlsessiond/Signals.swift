import Base
import Glibc

/// `SIGTERM` and `SIGINT`, waited for by a thread of their own; what would end the process by mistake is ignored.
enum Signals {
    /// Blocks the signals in this thread and all that it starts. Call it first.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
        var set = termination
        pthread_sigmask(SIG_BLOCK, &set, nil)
    }

    /// Returns when the process is asked to end.
    static func waitForTermination() async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            let waiter = Unmanaged.passRetained(Waiter(continuation))
            var thread = pthread_t()
            let code = pthread_create(
                &thread, nil,
                { context in
                    // The thread was given the one reference that `passRetained` made.
                    let waiter = Unmanaged<Waiter>.fromOpaque(context!).takeRetainedValue()
                    var set = Signals.termination
                    var number: Int32 = 0
                    sigwait(&set, &number)
                    waiter.continuation.resume()
                    return nil
                }, waiter.toOpaque())
            precondition(code == 0, "pthread_create: \(code)")
            pthread_detach(thread)
        }
    }

    private final class Waiter {
        let continuation: CheckedContinuation<Void, Never>
        init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = continuation }
    }

    private static var termination: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGTERM)
        sigaddset(&set, SIGINT)
        return set
    }
}

/// Tells systemd about the service's state (sd_notify(3)); does nothing where `NOTIFY_SOCKET` is not set.
enum ServiceManager {
    static func notify(_ state: String) {
        guard let path = getenv("NOTIFY_SOCKET").map({ String(cString: $0) }), !path.isEmpty else { return }
        let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        var bytes = Array(path.utf8)
        if bytes.first == UInt8(ascii: "@") { bytes[0] = 0 }
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count)
        let message = Array(state.utf8)
        _ = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, message, message.count, Int32(MSG_NOSIGNAL), $0, length)
            }
        }
    }
}
