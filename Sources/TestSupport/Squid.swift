import Base
import Formats
import Glibc

/// The machine's squid on a free loopback port, as an HTTP proxy without a cache.
package final class Squid: Sendable {
    private static let binary = "/usr/sbin/squid"
    private static let helpers = "/usr/lib/squid"

    package static let isAvailable =
        access(binary, X_OK) == 0 && access("\(helpers)/basic_ncsa_auth", X_OK) == 0
        && access("/usr/bin/openssl", X_OK) == 0

    /// The authentication of users: `u` with the password `p` in the realm `the proxy`.
    package enum Authentication: Sendable { case none, basic, digest }

    package let port: UInt16
    private let folder: TemporaryFolder
    private let process: ChildProcess

    package init(_ authentication: Authentication = .none) async throws {
        // Squid's user needs access, which not every temporary folder permits.
        let folder = TemporaryFolder(in: "/tmp")
        self.folder = folder
        let hash = try await ChildProcess.run(["/usr/bin/openssl", "passwd", "-apr1", "p"])
        folder.write(Array("u:".utf8) + hash, to: "users")
        let secret = Content.hex(Digest.of(Array("u:the proxy:p".utf8), .md5))
        folder.write(Array("u:the proxy:\(secret)\n".utf8), to: "digests")
        // Squid refuses to run as root, and its user has to write its log.
        let unprivileged: uid_t = 65534
        var prefix: [String] = []
        if geteuid() == 0 {
            chmod(folder.path, 0o755)
            for name in ["", "/users", "/digests"] { chown("\(folder.path)\(name)", unprivileged, unprivileged) }
            // The kernel clears the parent-death signal when the process changes its user.
            prefix = [
                "/usr/bin/setpriv", "--reuid=\(unprivileged)", "--regid=\(unprivileged)", "--clear-groups",
                "--pdeathsig", "KILL",
            ]
        }
        let (ports, process) = try await startOnFreePorts(1) { ports in
            unlink(folder.file("cache.log"))
            let file = folder.write(
                Array(Self.configuration(folder, ports[0], authentication).utf8), to: "squid.conf")
            chmod(file, 0o644)
            return prefix + [Self.binary, "-N", "-n", Self.service(ports[0]), "-f", file]
        } isReady: {
            let log = String(decoding: readFile(folder.file("cache.log")) ?? [], as: UTF8.self)
            return log.contains("Accepting HTTP Socket connections")
        }
        (port, self.process) = (ports[0], process)
        // A killed squid leaves the files of its shared memory. It needs no names of files that it has opened.
        for part in ["metadata", "queues", "readers"] {
            unlink("/dev/shm/\(Self.service(port))-cf__\(part).shm")
        }
    }

    /// The name of a process' shared memory.
    private static func service(_ port: UInt16) -> String { "urlsessiond\(port)" }

    /// The lines of its log, one for each request.
    package var requests: [String] {
        String(decoding: readFile(folder.file("access.log")) ?? [], as: UTF8.self).split(separator: "\n").map(
            String.init)
    }

    private static func configuration(
        _ folder: TemporaryFolder, _ port: UInt16, _ authentication: Authentication
    ) -> String {
        let access =
            switch authentication {
            case .none: "http_access allow all"
            case .basic:
                """
                auth_param basic program \(helpers)/basic_ncsa_auth \(folder.file("users"))
                auth_param basic realm the proxy
                auth_param basic children 1 startup=1 idle=1
                acl known proxy_auth REQUIRED
                http_access allow known
                """
            case .digest:
                """
                auth_param digest program \(helpers)/digest_file_auth -c \(folder.file("digests"))
                auth_param digest realm the proxy
                auth_param digest children 1 startup=1 idle=1
                acl known proxy_auth REQUIRED
                http_access allow known
                """
            }
        return """
            http_port 127.0.0.1:\(port)
            pid_filename \(folder.file("squid.pid"))
            logformat line %>Hs %rm %ru %un
            access_log stdio:\(folder.file("access.log")) logformat=line
            buffered_logs off
            cache_log \(folder.file("cache.log"))
            cache_store_log none
            coredump_dir \(folder.path)
            cache deny all
            pinger_enable off
            netdb_filename none
            shutdown_lifetime 0 seconds
            visible_hostname squid.test
            \(access)
            http_access deny all

            """
    }
}
