import Glibc

/// The user of a program that refuses to run as root: another user if the tests run as root, else their own.
struct ProgramUser: Sendable {
    private let ids: (user: uid_t, group: gid_t)?

    /// - Parameter names: Names of users, of which the first existing one is used.
    init(_ names: String...) { ids = geteuid() == 0 ? names.lazy.compactMap(Self.ids).first : nil }

    private static func ids(_ name: String) -> (user: uid_t, group: gid_t)? {
        let lines = String(decoding: readFile("/etc/passwd") ?? [], as: UTF8.self).split(separator: "\n")
        let users: [[Substring]] = lines.map { $0.split(separator: ":", omittingEmptySubsequences: false) }
        let fields = users.first { $0.count > 3 && $0[0] == name }
        guard let fields, let user = uid_t(fields[2]), let group = gid_t(fields[3]) else { return nil }
        return (user, group)
    }

    /// The words before the program's command.
    var prefix: [String] {
        guard let ids else { return [] }
        // The kernel clears the parent-death signal when a process changes its user: it is set again.
        return [
            "/usr/bin/setpriv", "--reuid=\(ids.user)", "--regid=\(ids.group)", "--clear-groups", "--pdeathsig", "KILL",
        ]
    }

    /// Creates a folder of the user.
    ///
    /// - Parameter place: The parent folder, usable by everyone; `nil` for the default temporary folder.
    func makeFolder(in place: String? = nil) throws -> TemporaryFolder {
        guard let ids else { return TemporaryFolder(in: place) }
        // The user needs access, which not every temporary folder permits.
        let folder = TemporaryFolder(in: place ?? "/tmp")
        guard chown(folder.path, ids.user, ids.group) == 0 else { throw NotGiven(path: folder.path, code: errno) }
        return folder
    }

    struct NotGiven: Error {
        let path: String
        /// The `errno` of `chown`.
        let code: Int32
    }
}
