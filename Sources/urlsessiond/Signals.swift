import CLinux
import Dispatch
import Glibc

/// `SIGTERM` and `SIGINT` end the service in order, `SIGHUP` has it read files again. Signals that would end it by mistake
/// are ignored, faults leave a mark.
///
/// Until the service takes requests, the first two end the process at once. That is safe: start-up repairs what was under
/// way.
enum Signals {
    /// Ignores the signals that files and sockets send. Call it first.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
    }

    /// Has faults of the process leave a file before they kill. False with `errno` set where they cannot.
    static func markFaults(at path: String) -> Bool { clinux_mark_faults(path) == 0 }
}

/// Signals that ask for something. What arrives is noted from the moment this is made, whether or not anybody waits yet.
///
/// A handler of ours, since a source of Dispatch's begins to listen some time after it was resumed, and no `sigwait`,
/// since Dispatch's main loop unblocks all signals.
struct SignalBell: Sendable {
    /// Never closed: the handler writes to it at any time.
    private let bell: Int32

    /// Nil with `errno` set where the system has no descriptor left.
    init?(_ numbers: Int32...) {
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard bell >= 0, numbers.allSatisfy({ clinux_ring_on($0, bell) == 0 }) else { return nil }
    }

    /// Returns when some of them arrived.
    func wait() async { await listen { false } }

    /// Runs `body` each time that some of them arrived, until it says stop (`false`) or the task is cancelled.
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
