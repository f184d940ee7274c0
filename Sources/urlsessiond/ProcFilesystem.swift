import Glibc

/// Swift's runtime reads `/proc`: the program's arguments, and periodically the state of its own threads, where
/// libdispatch ends the process with SIGILL if it cannot. Therefore a missing `/proc` is reported at the start.
enum ProcFilesystem {
    /// Prints that `/proc` is missing, and returns the exit status for that; nil if it is mounted.
    static func complain() -> Int32? {
        guard access("/proc/self/stat", R_OK) != 0 else { return nil }
        let text = "urlsessiond: /proc is not mounted, and Swift's runtime needs it: mount -t proc proc /proc\n"
        _ = write(STDERR_FILENO, text, text.utf8.count)
        return Command.Exit.system
    }
}
