import Base
import Glibc

/// Cleans up what a program leaves behind, once it is told to or this process ends, be it by SIGKILL.
///
/// A shell that waits for the end of a pipe, whose other end is nowhere but here.
final class Sweeper: Sendable {
    private let process: ChildProcess
    /// The end of the pipe that is written to; nil once it is closed.
    private let pipe: Locked<Int32?>

    /// - Parameters:
    ///   - script: What the shell is to do then.
    ///   - argument: What is `$0` in the script.
    init(_ script: String, _ argument: String) async throws {
        let ends = try Spawner.exclusively { try Spawner.pipe() }
        defer { close(ends.read) }
        do {
            // It is the one child that outlives this process.
            process = try await ChildProcess(
                [
                    "/usr/bin/setpriv", "--pdeathsig", "clear", "/bin/sh", "-c", "read -r nothing <&3\n\(script)",
                    argument,
                ], descriptors: [3: ends.read])
        } catch {
            close(ends.write)
            throw error
        }
        pipe = Locked(ends.write)
    }

    deinit { sweep() }

    /// Has it done, and keeps the thread it is called on until it is.
    func sweep() {
        let end = pipe.withLock { pipe -> Int32? in
            defer { pipe = nil }
            return pipe
        }
        guard let end else { return }
        close(end)
        process.waitForEnd(within: .seconds(10))
    }
}
