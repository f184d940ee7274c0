import CLinux
import Dispatch
import Glibc

/// `SIGTERM` and `SIGINT` end the service in order, `SIGHUP` has it read files again. Signals that would end it by mistake
/// are ignored, faults leave a mark.
///
/// Until the service waits for them, the two end the process at once. That is safe: start-up repairs what was under way.
enum Signals {
    /// Ignores the signals that files and sockets send. Call it first.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        signal(SIGHUP, SIG_IGN)
    }

    /// Has faults of the process leave a file before they kill. False with `errno` set where they cannot.
    static func markFaults(at path: String) -> Bool { clinux_mark_faults(path) == 0 }

    /// Runs `body` each time that the process is asked to read its files again, until the task is cancelled.
    static func onHangup(_ body: () -> Void) async {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let source = DispatchSource.makeSignalSource(signal: SIGHUP, queue: .global())
        source.setEventHandler { arrived.yield() }
        source.resume()
        for await _ in arrivals { body() }
        source.cancel()
    }

    /// Returns when the process is asked to end.
    ///
    /// Through Dispatch: its main loop unblocks all signals, so that waiting for blocked ones (`sigwait`) never sees any.
    static func waitForTermination() async {
        let (arrivals, arrived) = AsyncStream.makeStream(of: Void.self)
        let sources = [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { arrived.yield() }
            source.resume()
            return source
        }
        for await _ in arrivals { break }
        for source in sources { source.cancel() }
    }
}
