import Base
import Glibc

/// A program of the machine that a test needs. Releasing the last reference kills it.
package final class ChildProcess: Sendable {
    package struct Failed: Error, CustomStringConvertible {
        package let arguments: [String]
        package let status: Int32
        package let errors: String
        package var description: String { "\(arguments.joined(separator: " ")): \(status) \(errors)" }
    }

    package let pid: Int32
    private let output: Int32
    private let errors: Int32
    /// The status of `waitpid` after the end.
    private let status = Locked<Int32?>(nil)

    /// Starts a program by its absolute path. Its output must fit into a pipe (64 KiB).
    ///
    /// - Parameters:
    ///   - environment: Variables besides `PATH`.
    ///   - descriptors: Descriptors of this process, by the numbers that the program gets.
    package init(
        _ arguments: [String], environment: [String] = [], descriptors: [Int32: Int32] = [:]
    ) async throws {
        (pid, output, errors) = try await Spawner.start(
            arguments, environment: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"] + environment, descriptors: descriptors)
    }

    deinit {
        if poll() == nil {
            kill(-pid, SIGKILL)
            var code: Int32 = 0
            waitpid(pid, &code, 0)
        }
        close(output)
        close(errors)
    }

    /// Runs a program to its end and returns its output. Throws unless its status is 0.
    @discardableResult
    package static func run(_ arguments: [String], within limit: Duration = .seconds(30)) async throws -> [UInt8] {
        let process = try await ChildProcess(arguments)
        let status = try await eventually("the end of \(arguments[0])", within: limit) { process.poll() }
        guard status == 0 else {
            throw Failed(
                arguments: arguments, status: status,
                errors: String(decoding: Self.readAll(process.errors), as: UTF8.self))
        }
        return Self.readAll(process.output)
    }

    /// Whether the program has ended.
    package var hasEnded: Bool { poll() != nil }

    /// Sends a signal, unless the program has ended.
    func signal(_ number: Int32) { if poll() == nil { kill(pid, number) } }

    /// Blocks the calling thread until the program has ended or `limit` is over. Only for threads that may block.
    func waitForEnd(within limit: Duration) {
        let deadline = ContinuousClock.now + limit
        while poll() == nil, ContinuousClock.now < deadline { usleep(1000) }
    }

    /// The peak resident memory in bytes (`VmHWM` of proc(5)); `nil` after the end.
    ///
    /// The figure of `wait4` is useless here: it begins with the memory of this process, which started the program.
    package var peakMemory: Int? {
        let lines = String(decoding: readFile("/proc/\(pid)/status") ?? [], as: UTF8.self).split(separator: "\n")
        let words = lines.first { $0.hasPrefix("VmHWM:") }?.split(whereSeparator: { $0 == " " || $0 == "\t" })
        return words.flatMap { $0.count == 3 ? Int($0[1]) : nil }.map { $0 * 1024 }
    }

    /// The wait status after the end.
    private func poll() -> Int32? {
        status.withLock { status in
            var code: Int32 = 0
            if status == nil, waitpid(pid, &code, WNOHANG) == pid { status = code }
            return status
        }
    }

    private static func readAll(_ descriptor: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            let piece = [UInt8](unsafeUninitializedCapacity: 4096) { buffer, count in
                count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
            }
            guard !piece.isEmpty else { return bytes }
            bytes += piece
        }
    }
}
