import CLinux
import Dispatch
import Glibc

/// `SIGTERM` and `SIGINT` end the service in order, `SIGHUP` reloads files. Signals that would end it by mistake are
/// ignored, and fatal faults leave a crash marker.
///
/// Until the service accepts requests, the first two end the process at once. That is safe: the next start recovers.
enum Signals {
    /// Ignores the signals that files and sockets send. Call it first.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
    }

    /// Installs handlers that create a file when the process faults. False with `errno` set if that fails.
    static func markFaults(at path: String) -> Bool { clinux_mark_faults(path) == 0 }
}

/// Signals as requests. A signal is recorded from the creation of this value, whether or not a caller waits yet.
///
/// A handler of its own, because a Dispatch source begins to listen some time after it was resumed; and no `sigwait`,
/// because Dispatch's main loop unblocks all signals.
struct SignalBell: Sendable {
    /// Never closed: the handler writes to it at any time.
    private let bell: Int32

    /// Nil with `errno` set if no descriptor is available.
    init?(_ numbers: Int32...) {
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0, numbers.allSatisfy({ clinux_ring_on($0, bell) == 0 }) else { return nil }
    }

    /// Returns when one of the signals has arrived.
    func wait() async { await listen { false } }

    /// Runs `body` after signals have arrived, until it returns `false` or the Swift task is cancelled.
    func listen(_ body: () -> Bool) async {
        let (rings, rung) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let source = DispatchSource.makeReadSource(fileDescriptor: bell, queue: .global())
        source.setEventHandler { [bell] in
            var count: UInt64 = 0
            if read(bell, &count, MemoryLayout.size(ofValue: count)) > 0 { rung.yield() }
        }
        source.resume()
        for await _ in rings where !body() { break }
        source.cancel()
    }
}
