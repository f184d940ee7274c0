import Base
import CLinux
import Glibc

/// Starts processes from one thread that lives as long as this process.
///
/// `setpriv --pdeathsig KILL` makes the kernel kill a child when the *thread* that started it ends, so that a test run
/// never leaves a process behind. Therefore the thread never ends.
enum Spawner {
    struct Failed: Error, CustomStringConvertible {
        let code: Int32
        var description: String { "posix_spawn: \(code)" }
    }

    private static let queue = Queue()
    // Not of `Void`: ThreadSanitizer mistakes a value without bytes for the memory after it.
    private static let lock = Locked(false)

    /// Runs `body` while no process is started: between opening a descriptor and marking it close-on-exec.
    static func exclusively<Result>(_ body: () throws -> Result) rethrows -> Result {
        try lock.withLock { _ in Unowned(value: try body()) }.value
    }

    // Unchecked: it carries a result out of the lock within one thread.
    private struct Unowned<Value>: @unchecked Sendable { let value: Value }

    /// The variables with the sanitizers' options, for instrumented programs.
    private static let sanitizers = ["TSAN_OPTIONS", "ASAN_OPTIONS", "LSAN_OPTIONS"]
        .compactMap { (name: String) in getenv(name).map { "\(name)=\(String(cString: $0))" } }

    /// Starts a program in a process group of its own, with pipes for its output.
    ///
    /// - Parameter descriptors: More descriptors of this process, by the numbers that the program gets.
    static func start(
        _ arguments: [String], environment: [String], descriptors: [Int32: Int32] = [:]
    ) async throws -> (pid: pid_t, output: Int32, errors: Int32) {
        try await withCheckedThrowingContinuation { continuation in
            queue.add {
                do {
                    continuation.resume(returning: try spawn(arguments, environment + sanitizers, descriptors))
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    private static func spawn(
        _ arguments: [String], _ environment: [String], _ descriptors: [Int32: Int32]
    ) throws -> (pid: pid_t, output: Int32, errors: Int32) {
        let output = try pipe()
        let errors = try pipe()
        defer {
            close(output.write)
            close(errors.write)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO)
        posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO)
        // First to unused numbers, so that no copy replaces the source of another.
        for (offset, own) in descriptors.values.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, own, 1000 + Int32(offset))
        }
        for (offset, number) in descriptors.keys.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, 1000 + Int32(offset), number)
            posix_spawn_file_actions_addclose(&actions, 1000 + Int32(offset))
        }
        // Foundation's sockets are not close-on-exec: a connection that a test closes would stay open in other tests'
        // children.
        posix_spawn_file_actions_addclosefrom_np(&actions, (descriptors.keys.max() ?? STDERR_FILENO) + 1)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var mask = sigset_t()
        sigemptyset(&mask)
        posix_spawnattr_setsigmask(&attributes, &mask)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK))
        let command = ["/usr/bin/setpriv", "--pdeathsig", "KILL"] + arguments
        var pid = pid_t()
        let code = withCStrings(command) { argv in
            withCStrings(environment) { envp in
                exclusively { posix_spawn(&pid, command[0], &actions, &attributes, argv, envp) }
            }
        }
        guard code == 0 else {
            close(output.read)
            close(errors.read)
            throw Failed(code: code)
        }
        return (pid, output.read, errors.read)
    }

    /// A pipe whose ends are not inherited.
    static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw Failed(code: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func withCStrings<Result>(
        _ strings: [String], _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
    ) -> Result {
        let pointers = strings.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        return body(pointers)
    }

    /// The work of the thread.
    private final class Queue: Sendable {
        private let work = Locked<[@Sendable () -> Void]>([])

        init() {
            startThread { [self] in
                while true {
                    let next = work.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                    if let next { next() } else { usleep(5000) }
                }
            }
        }

        func add(_ body: @escaping @Sendable () -> Void) { work.withLock { $0.append(body) } }
    }
}
