import Base
import CLinux
import Glibc

/// Restarts a node in the same process if other nodes took it over while it was suspended: under its old identity it
/// can commit nothing.
enum Restart {
    private static let startedAt = Clock.system.monotonic()
    /// The time in milliseconds before which no silent node is taken over. A process that was taken over sooner has a
    /// double of the same name; it ends, because the two would replace each other for ever.
    private static let shortest: Int64 = 15_000

    /// Notes the start time of the process and the death signal that its parent has set. Call it first.
    static func prepare() {
        _ = startedAt
        _ = clinux_prepare_restart()
    }

    /// Returns if the process has to end.
    static func perform(_ log: Log, _ logWriter: LogWriter) {
        guard Clock.system.monotonic() - startedAt > shortest else {
            return log.error("another process has this node's name: give each node a --data-dir of its own")
        }
        log.warning("the other nodes took over this node's work while it was suspended or cut off: this node restarts")
        logWriter.flush(within: .milliseconds(500))
        _ = clinux_restart(CommandLine.unsafeArgv)
        log.error("the program could not restart", ("error", String(cString: strerror(errno))))
    }
}
