import Base
import Glibc
import TestSupport

/// The service of all misdeeds, each of which has an app of its own.
///
/// It may reach only 127.0.0.0/9 and public addresses. If the machine permits a mount namespace, it trusts
/// ``authority`` and resolves the names of ``hosts``.
final class Stage: Sendable {
    /// Names in the form of `/etc/hosts`. Lines that tests change keep their length.
    private static let hosts = """
        127.0.0.1        localhost
        127.0.0.1        www.shop.co.uk img.shop.co.uk other.co.uk strict.shop.co.uk
        10.1.2.3         intranet.test
        127.0.0.1        mixed.test
        10.1.2.3         mixed.test
        127.0.0.1        many.test
        127.0.0.2        many.test
        127.0.0.3        many.test
        127.77.7.7       many.test
        127.0.0.1        moving.test
        127.0.0.1        leaving.test

        """

    let service: ServiceProcess
    let authority: Authority
    private let files = TemporaryFolder()
    private let adminKey: String
    private let count = Locked(0)

    private static let current = Locked<Task<Stage, any Error>?>(nil)

    /// The stage, set up at its first use.
    static func shared() async throws -> Stage {
        let task = current.withLock { current in
            let task = current ?? Task { try await Stage() }
            current = task
            return task
        }
        return try await task.value
    }

    /// Ends it after its last scene.
    static func close() { current.withLock { $0 = nil } }

    /// Whether the service can get names and trust of its own.
    static let hasNames = Task { () -> Bool in
        guard Authority.isAvailable else { return false }
        let folder = TemporaryFolder()
        folder.makeFolder("trust")
        let names = Stage.wrapper(hosts: folder.write([], to: "hosts"), trust: folder.file("trust"))
        return (try? await ChildProcess.run(names + ["/bin/true"])) != nil
    }

    private init() async throws {
        authority = try await Authority()
        let file = files.write(Array(Self.hosts.utf8), to: "hosts")
        let wrapper = await Self.hasNames.value ? Self.wrapper(hosts: file, trust: authority.trust) : []
        service = try await ServiceProcess(
            ["--allow-egress", "127.0.0.0/9", "--free-disk-floor", "0"], dev: false, wrapper: wrapper)
        let key = readFile(service.data.file("data/admin.key")) ?? []
        adminKey = String(decoding: key.prefix { $0 != 0x0A }, as: UTF8.self)
    }

    /// Runs a command with other names and roots of trust.
    private static func wrapper(hosts: String, trust: String) -> [String] {
        let script = """
            mount --bind "$0" /etc/hosts && mount --bind "$1" /etc/ssl/certs && shift \
            && exec setpriv --pdeathsig KILL "$@"
            """
        return ["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, hosts, trust]
    }

    /// An app with the session `s`, and an origin.
    func scene(_ configuration: JSON) async throws -> Scene {
        let number = count.withLock { count in
            count += 1
            return count
        }
        let admin = service.admin.with(key: adminKey)
        let app = try await admin.post("/v1/apps", ["identifier": .string("app-\(number)")])
        guard let key = app.json["apiKey"].string else { throw Wrong("no app: \(app.text)") }
        return try await Scene(on: service, key: key, configuration: configuration)
    }

    /// Changes the address of a name from the next look-up on.
    func point(_ name: String, to address: String) throws {
        let padding = String(repeating: " ", count: max(1, 17 - address.count))
        var found = false
        let lines = (readFile(files.file("hosts")) ?? []).split(separator: 0x0A, omittingEmptySubsequences: false)
        var offset = 0
        for line in lines {
            let text = String(decoding: line, as: UTF8.self)
            if text.hasSuffix(" \(name)") {
                // One write of the same length: no reader sees half of it.
                let new = Array((address + padding + name).utf8)
                let descriptor = open(files.file("hosts"), O_WRONLY | O_CLOEXEC)
                found = new.count == line.count && pwrite(descriptor, new, new.count, off_t(offset)) == new.count
                Glibc.close(descriptor)
            }
            offset += line.count + 1
        }
        guard found else { throw Wrong("no line of \(name)") }
    }
}
