import Base
import Glibc
import Options
import SQL
import Store
import Wire

enum Command {
    static let version = Release.version

    /// Exit statuses of `sysexits.h`.
    enum Exit {
        static let done: Int32 = 0
        static let failed: Int32 = 1
        static let usage: Int32 = 64
        static let unavailable: Int32 = 69
        static let software: Int32 = 70
        static let system: Int32 = 71
        static let cannotCreate: Int32 = 73
        static let output: Int32 = 74
        static let inUse: Int32 = 75
    }

    /// Runs one command and returns the process's exit status.
    static func run(_ arguments: [String]) async -> Int32 {
        if let command = arguments.first, arguments.dropFirst().contains(where: { $0 == "--help" || $0 == "-h" }),
            let help = help(about: command)
        {
            return tell(help)
        }
        switch arguments.first {
        case "serve": return await serve(Array(arguments.dropFirst()))
        case "check-config": return checkConfiguration(Array(arguments.dropFirst()))
        case "backup": return copy(.backup, Array(arguments.dropFirst()))
        case "export": return copy(.export, Array(arguments.dropFirst()))
        case "import": return copy(.import, Array(arguments.dropFirst()))
        case "healthcheck": return HealthCheck.run(Array(arguments.dropFirst()), environment: environment())
        case "--version", "version": return tell("urlsessiond \(version)")
        case "--help", "-h", "help": return tell(help)
        case "man": return tell(ManualPage.text)
        case nil:
            complain(help)
            return Exit.usage
        case let word?:
            complain("urlsessiond: \(word): no such command; see urlsessiond --help")
            return Exit.usage
        }
    }

    private static func serve(_ arguments: [String]) async -> Int32 {
        guard let configuration = configuration(arguments) else { return Exit.usage }
        do {
            return try await Serve(configuration) { () throws(Configuration.Faults) in
                try Configuration(arguments: arguments, environment: environment())
            }.run()
        } catch {
            return fail(error, otherwise: Exit.software)
        }
    }

    private static func checkConfiguration(_ arguments: [String]) -> Int32 {
        guard let configuration = configuration(arguments) else { return Exit.usage }
        do throws(Serve.Failure) {
            _ = try Serve.certificate(configuration)
        } catch {
            complain("urlsessiond: \(error.text)")
            return Exit.usage
        }
        return tell(configuration.description.map { name, value in "\(name) = \(value)" }.joined(separator: "\n"))
    }

    private enum Copy: String {
        case backup, export, `import`
    }

    /// `backup FILE` copies the database, whether or not the service runs; `export FILE` and `import FILE` move a store
    /// from one place to another.
    private static func copy(_ copy: Copy, _ arguments: [String]) -> Int32 {
        guard let file = arguments.first, !file.hasPrefix("--") else {
            let store = copy == .backup ? "" : "[--store URL] "
            complain("usage: urlsessiond \(copy.rawValue) FILE \(store)[--data-dir DIR]")
            return Exit.usage
        }
        guard let configuration = configuration(Array(arguments.dropFirst())) else { return Exit.usage }
        let (path, database) = (LocalFile.absolute(file), Serve.databasePath(configuration))
        let location = configuration.server.map { Store.Location.server($0, node: copy.rawValue) } ?? .file(database)
        do {
            switch copy {
            case .backup where configuration.server != nil:
                complain(
                    "urlsessiond: backup: the database is a PostgreSQL server's: copy it with pg_dump or a base backup")
                return Exit.usage
            case .backup: try Database.copy(of: database, to: path)
            case .export: try Store.export(location, to: path)
            case .import:
                let lock = try lockFolder(configuration)
                defer { withExtendedLifetime(lock) {} }
                try Store.load(path, into: location)
            }
            return Exit.done
        } catch {
            return fail(error, of: copy.rawValue, otherwise: Exit.cannotCreate)
        }
    }

    /// Prints why a command failed, and returns the process's exit status.
    private static func fail(_ error: any Error, of command: String? = nil, otherwise status: Int32) -> Int32 {
        let failure = error as? Serve.Failure ?? Serve.Failure(text: "\(error)", status: status)
        complain("urlsessiond: \(command.map { "\($0): " } ?? "")\(failure.text)")
        return failure.status
    }

    private static func lockFolder(_ configuration: Configuration) throws(Serve.Failure) -> FolderLock {
        let folder = configuration.dataFolder
        guard LocalFile.makeFolder(folder) else {
            throw Serve.Failure(text: "\(folder): cannot be created: \(String(cString: strerror(errno)))")
        }
        return try FolderLock(folder, remedy: "stop it first")
    }

    /// The settings, or nil after printing their faults.
    private static func configuration(_ arguments: [String]) -> Configuration? {
        do throws(Configuration.Faults) {
            return try Configuration(arguments: arguments, environment: environment())
        } catch {
            for line in error.lines { complain("urlsessiond: \(line)") }
            return nil
        }
    }

    private static func environment() -> [String: String] {
        var variables: [String: String] = [:]
        var entry = environ
        while let text = entry.pointee {
            let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            if parts.count == 2 { variables[String(parts[0])] = String(parts[1]) }
            entry += 1
        }
        return variables
    }

    /// Writes a result to standard output.
    ///
    /// - Returns: The process's exit status. A reader that closed the pipe is not reported.
    private static func tell(_ text: String) -> Int32 {
        do throws(SystemError) {
            try say(text)
            return Exit.done
        } catch {
            if error.errno != EPIPE {
                complain("urlsessiond: standard output: \(String(cString: strerror(error.errno)))")
            }
            return Exit.output
        }
    }

    static func say(_ text: String) throws(SystemError) { try write(text, to: STDOUT_FILENO) }

    /// Writes lines to standard error. A failure is not reported: only the exit status is left.
    static func complain(_ text: String) { try? write(text, to: STDERR_FILENO) }

    private static func write(_ text: String, to descriptor: Int32) throws(SystemError) {
        var rest = Array((text.hasSuffix("\n") ? text : text + "\n").utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count >= 0 {
                rest = rest.dropFirst(count)
            } else if errno != EINTR {
                throw SystemError("write", errno: errno)
            }
        }
    }

    static let usages = [
        ("urlsessiond serve [FLAGS]", "serve until SIGTERM"),
        ("urlsessiond check-config [FLAGS]", "print the effective settings"),
        ("urlsessiond backup FILE [FLAGS]", "copy the database, also while the service runs"),
        ("urlsessiond export FILE [FLAGS]", "write the whole store into a file"),
        ("urlsessiond import FILE [FLAGS]", "fill an empty store from an exported file"),
        ("urlsessiond healthcheck [URL] [FLAGS]", "exit 0 if the service answers /healthz"),
        ("urlsessiond man", "write the manual page"),
        ("urlsessiond help", "print the help of all commands, like COMMAND --help of one"),
        ("urlsessiond --version", "print the version"),
    ]

    /// The places where flags may be given.
    static let aboutFlags = """
        Each flag is also an environment variable (--data-dir: URLSESSIOND_DATA_DIR) and a member of the
        --config file. Flags precede variables, which precede the file.
        """

    private static var flags: [String] {
        Setting.all.map { setting in
            let flag = "  \(setting.usage)"
            let gap = String(repeating: " ", count: max(2, 34 - flag.utf8.count))
            return flag + gap + setting.help
        }
    }

    /// The help of one command; `nil` for a word that is no command.
    private static func help(about command: String) -> String? {
        let name = command == "version" ? "--version" : command
        guard let (usage, meaning) = usages.first(where: { $0.0.split(separator: " ").dropFirst().first == name[...] })
        else { return nil }
        guard usage.hasSuffix("[FLAGS]") else { return "usage: \(usage)\n\n\(meaning)" }
        return "usage: \(usage)\n\n\(meaning)\n\n\(aboutFlags)\n\n\(flags.joined(separator: "\n"))"
    }

    private static var help: String {
        let calls = usages.map { usage, meaning in
            usage + String(repeating: " ", count: max(1, 38 - usage.utf8.count)) + meaning
        }
        return """
            urlsessiond \(version): background URLSession as an HTTP service

            \(calls.joined(separator: "\n"))

            \(aboutFlags)

            \(flags.joined(separator: "\n"))
            """
    }
}
