import Glibc
import Wire

/// The service and the key, from options, the environment and the configuration file.
struct Settings: Sendable {
    var url = "http://127.0.0.1:8080"
    var key = "dev"
    var webhookSecret: String?
    /// The file of trusted certificates; `nil` for those of the machine.
    var certificates: String?
}

/// A section of the configuration file.
struct Profile: Equatable {
    var values: [String: String] = [:]

    static let members = ["url", "key", "webhook-secret", "ca-file"]

    static let about = """
        Profiles: parts that begin with [NAME] and have lines url = URL, key = KEY, webhook-secret = SECRET and \
        ca-file = FILE. The one named default is used unless --profile or URLSESSION_PROFILE names another. Keep the \
        file to yourself (mode 600).
        """

    /// Parses a file of profiles; lines that begin with `#` are comments.
    static func parse(_ text: String) throws -> [String: Profile] {
        var profiles: [String: Profile] = [:]
        var name: String?
        for (index, line) in text.lines.enumerated() {
            let line = line.trimmed
            if line.isEmpty || line.hasPrefix("#") { continue }
            if line.hasPrefix("["), line.hasSuffix("]") {
                let title = String(line.dropFirst().dropLast()).trimmed
                name = title
                profiles[title] = profiles[title] ?? Profile()
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map { $0.trimmed }
            guard parts.count == 2, members.contains(parts[0]) else {
                // A line without a value may be a key, perhaps with padding, which no message repeats.
                let hasValue = parts.count == 2 && parts[1].contains { $0 != "=" }
                let list = members.joined(separator: ", ")
                throw Fault(
                    line: index + 1, text: hasValue ? "\(parts[0]) is none of \(list)" : "this is not NAME = VALUE")
            }
            profiles[name ?? "default", default: Profile()].values[parts[0]] = parts[1]
        }
        return profiles
    }

    struct Fault: Error, Equatable {
        let line: Int
        let text: String
    }
}

extension Settings {
    /// `~/.config/urlsession/config`.
    static var path: String {
        let home = environment("HOME") ?? ""
        let folder = environment("XDG_CONFIG_HOME").flatMap { $0.hasPrefix("/") ? $0 : nil } ?? "\(home)/.config"
        return "\(folder)/urlsession/config"
    }

    /// The settings of a call: options precede the environment, which precedes the file.
    static func found(for words: CallWords) throws -> Settings {
        let profiles = try profiles()
        let named = words.text("profile") ?? environment("URLSESSION_PROFILE")
        if let named, profiles[named] == nil { throw Failure("there is no profile \(named) in \(path)", status: 2) }
        let isChosen = words.text("profile") != nil
        let profile = profiles[named ?? "default"]?.values ?? [:]
        func value(_ member: String, _ variable: String) -> String? {
            isChosen ? profile[member] ?? environment(variable) : environment(variable) ?? profile[member]
        }
        var settings = Settings()
        settings.url = words.text("url") ?? value("url", "URLSESSION_URL") ?? settings.url
        settings.certificates = words.text("ca-file") ?? value("ca-file", "URLSESSION_CA_FILE")
        settings.webhookSecret = value("webhook-secret", "URLSESSION_WEBHOOK_SECRET")
        // The key of a profile is only for the service of that profile.
        let isElsewhere = !isChosen && settings.url != profile["url"] ?? Settings().url
        settings.key = (isElsewhere ? environment("URLSESSION_KEY") : value("key", "URLSESSION_KEY")) ?? settings.key
        return settings
    }

    static func profiles() throws -> [String: Profile] {
        guard let bytes = try? LocalFiles.read(path) else { return [:] }
        let profiles: [String: Profile]
        do {
            profiles = try Profile.parse(String(decoding: bytes, as: UTF8.self))
        } catch let fault as Profile.Fault {
            throw Failure("\(path), line \(fault.line): \(fault.text)", status: 2)
        }
        let hasSecret = profiles.values.contains { $0.values["key"] != nil || $0.values["webhook-secret"] != nil }
        if hasSecret, LocalFiles.othersRead(path) {
            Output.complain("other users can read the key in \(path); protect it with chmod 600")
        }
        return profiles
    }
}

extension String {
    /// The lines of a file, including empty ones. A carriage return and a line feed are one character.
    var lines: [Substring] { split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" } }
}

enum LocalFiles {
    /// All bytes of a file; `-` is standard input.
    static func read(_ path: String) throws(Failure) -> [UInt8] {
        if path == "-" { return try read(STDIN_FILENO, "standard input") }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure("\(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        return try read(descriptor, path)
    }

    /// A file with JSON of the API.
    static func json<Value: JSONReadable>(_ path: String) throws(Failure) -> Value {
        let bytes = try read(path)
        do {
            return try Value(parsing: bytes, .strict)
        } catch {
            throw Failure("\(path == "-" ? "standard input" : path): \(Problem(error).detail)")
        }
    }

    /// - Parameter name: The name of the file, for errors.
    private static func read(_ descriptor: Int32, _ name: String) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        while true {
            var (read, code) = (0, Int32(0))
            let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
                read = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                (count, code) = (max(0, read), errno)
            }
            guard read >= 0 || code == EINTR else { throw Failure("\(name): \(String(cString: strerror(code)))") }
            guard read != 0 else { return bytes }
            bytes += piece
        }
    }

    static func write(_ text: String, to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw Failure("\(path): \(String(cString: strerror(errno)))") }
        defer { close(descriptor) }
        try Terminal.write(Array(text.utf8), to: descriptor, path)
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    static func isFolder(_ path: String) -> Bool { status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false }

    /// Whether the file can be read only once.
    static func isPipe(_ path: String) -> Bool {
        status(path).map { [S_IFIFO, S_IFSOCK, S_IFCHR].contains($0.st_mode & S_IFMT) } ?? false
    }

    /// The length and the modification time, which distinguish versions of a file.
    static func version(_ path: String) -> String? {
        status(path).map { "\($0.st_size) \($0.st_mtim.tv_sec).\($0.st_mtim.tv_nsec)" }
    }

    static func othersRead(_ path: String) -> Bool { status(path).map { $0.st_mode & 0o077 != 0 } ?? false }

    /// The path without links; `nil` if it cannot be determined.
    static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    /// Creates a folder, unless it exists, and syncs the one that contains it.
    static func makeFolder(_ path: String) throws {
        guard mkdir(path, 0o777) == 0 else {
            guard errno != EEXIST else { return }
            throw Failure("\(path): \(String(cString: strerror(errno)))")
        }
        let parent = open(path + "/..", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        defer { if parent >= 0 { close(parent) } }
        // A folder that may be written but not read cannot be synced.
        if parent < 0, errno == EACCES { return }
        // Some file systems sync folders themselves and return EINVAL.
        guard parent >= 0, fsync(parent) == 0 || errno == EINVAL else {
            throw Failure("\(path): \(String(cString: strerror(errno)))")
        }
    }

    /// Creates the folders of a relative path below a folder.
    static func makeFolders(of name: String, below folder: String) throws {
        var path = folder
        for part in name.split(separator: "/").dropLast() {
            path += "/" + part
            if !isFolder(path) { try makeFolder(path) }
        }
    }

    /// The path relative to the current folder, if it is below that.
    static func relative(_ path: String) -> String {
        let here = absolute(".") + "/"
        return path.hasPrefix(here) && path != here ? String(path.dropFirst(here.count)) : path
    }

    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        guard let here = getcwd(nil, 0) else { return path }
        defer { free(here) }
        let folder = String(cString: here)
        return path == "." ? folder : folder + (folder.hasSuffix("/") ? "" : "/") + path
    }
}
