import Glibc
import TestSupport
import Testing

/// A small filesystem for a service's data folder. It outlives the service, so that another one can start on it.
final class SmallDisk: Sendable {
    let data: TemporaryFolder
    /// The command that runs a service with the filesystem.
    let wrapper: [String]
    private let holder: ChildProcess
    /// The data folder's path in this process.
    private let path: String

    init(megabytes: Int) async throws {
        data = TemporaryFolder()
        let folder = data.makeFolder("data")
        let note = data.file("holder")
        let script = """
            mount -t tmpfs -o size=\(megabytes)m,mode=700 none "$0" && echo $$ > "$1.new" && mv "$1.new" "$1" \
            && exec setpriv --pdeathsig KILL sleep infinity
            """
        holder = try await ChildProcess(["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, folder, note])
        let pid = try await eventually("the filesystem is mounted") { () -> String? in
            readFile(note).map { String(decoding: $0, as: UTF8.self).filter(\.isNumber) }
        }
        path = "/proc/\(pid)/root\(folder)"
        wrapper = [
            "/usr/bin/nsenter", "--preserve-credentials", "-U", "-m", "-t", pid, "/usr/bin/setpriv", "--pdeathsig",
            "KILL",
        ]
    }

    /// Whether the machine permits such a filesystem.
    static func canBeHad() async -> Bool {
        let folder = TemporaryFolder()
        let mount = "mount -t tmpfs -o size=1m none \(folder.path)"
        return (try? await ChildProcess.run(["/usr/bin/unshare", "-rm", "/bin/sh", "-c", mount])) != nil
    }

    /// The free bytes.
    var free: Int {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return -1 }
        return Int(status.f_bavail) * Int(status.f_frsize)
    }

    /// The files below one of its folders.
    func files(_ folder: String) -> [String] { filesBelow("\(path)/\(folder)") }

    /// Occupies all of it but some bytes. A service may write to it meanwhile.
    func fill(leaving count: Int) async throws {
        let file = open("\(path)/filler", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        try #require(file >= 0)
        defer { close(file) }
        try await eventually("the disk is filled") {
            let rest = free - count
            return rest <= 0 || posix_fallocate(file, 0, off_t(rest)) == 0
        }
    }

    func empty() { unlink("\(path)/filler") }
}
