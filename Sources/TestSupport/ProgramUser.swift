import Glibc

/// The user as whom a program runs that refuses to be root: where the tests run as root another one, else their own.
struct ProgramUser: Sendable {
    private let ids: (user: uid_t, group: gid_t)?

    /// - Parameter names: The first of them that the machine has is the one.
    init(_ names: String...) { ids = geteuid() == 0 ? names.lazy.compactMap(Self.ids).first : nil }

    private static func ids(_ name: String) -> (user: uid_t, group: gid_t)? {
        let lines = String(decoding: readFile("/etc/passwd") ?? [], as: UTF8.self).split(separator: "\n")
        let users: [[Substring]] = lines.map { $0.split(separator: ":", omittingEmptySubsequences: false) }
        let fields = users.first { $0.count > 3 && $0[0] == name }
        guard let fields, let user = uid_t(fields[2]), let group = gid_t(fields[3]) else { return nil }
        return (user, group)
    }

    /// What stands before the program's command.
    var prefix: [String] {
        guard let ids else { return [] }
        // The kernel forgets with whom to kill a process when it becomes another user: it is told once more.
        return [
            "/usr/bin/setpriv", "--reuid=\(ids.user)", "--regid=\(ids.group)", "--clear-groups", "--pdeathsig", "KILL",
        ]
    }

    /// A folder of his own.
    ///
    /// - Parameter place: Where, a folder that everybody may use; nil for that of temporary files.
    func makeFolder(in place: String? = nil) throws -> TemporaryFolder {
        guard let ids else { return TemporaryFolder(in: place) }
        // He has to get there, which not every folder of temporary files allows.
        let folder = TemporaryFolder(in: place ?? "/tmp")
        guard chown(folder.path, ids.user, ids.group) == 0 else { throw NotGiven(path: folder.path, code: errno) }
        return folder
    }

    struct NotGiven: Error {
        let path: String
        /// `errno` of `chown`.
        let code: Int32
    }
}
