import Base
import Glibc

/// Removes the remains of a program on request or at the end of this process, even by SIGKILL.
///
/// It is a shell that waits for the end of a pipe whose other end only this process has.
final class Sweeper: Sendable {
    private let process: ChildProcess
    /// The writing end of the pipe; `nil` once it is closed.
    private let pipe: Locked<Int32?>

    /// - Parameters:
    ///   - script: The script that the shell then runs.
    ///   - argument: The value of `$0` in the script.
    init(_ script: String, _ argument: String) async throws {
        let ends = try Spawner.exclusively { try Spawner.pipe() }
        defer { close(ends.read) }
        do {
            // The only child that outlives this process.
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

    /// Runs the script, and blocks the calling thread until its end.
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
