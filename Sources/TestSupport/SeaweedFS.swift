import Base
import Buckets
import Core
import Glibc
import TransferEngine

/// SeaweedFS as an S3 server with the bucket `bucket`, in one process. Releasing the last reference kills it.
package final class SeaweedFS: Sendable {
    /// The place where `make test` installs it; `SEAWEEDFS_BINARY` names another one.
    private static let binary =
        getenv("SEAWEEDFS_BINARY").map { String(cString: $0) } ?? "\(repository)/.build/venv/seaweedfs/bin/weed"

    private static let exchanges = Result { try Exchanges(log: .none) }

    package static let isAvailable = access(binary, X_OK) == 0

    package let port: UInt16
    private let data: TemporaryFolder
    private let ports: [UInt16]
    private let process: Locked<ChildProcess?>

    package init() async throws {
        data = TemporaryFolder()
        let identities = #"""
            {"identities": [{"name": "test", "credentials": [{"accessKey": "id", "secretKey": "secret"}],
            "actions": ["Admin", "Read", "Write", "List"]}]}
            """#
        data.write(Array(identities.utf8), to: "s3.json")
        data.makeFolder("data")
        // It uses further ports 10,000 above, for gRPC.
        for _ in 0..<5 {
            let ports = (0..<4).map { _ in UInt16.random(in: 20_000...31_000) }
            let process = try await Self.start(ports, data)
            try await eventually("SeaweedFS listens, or gives up") {
                if process.hasEnded { return true }
                return await Self.answers(ports[3])
            }
            guard !process.hasEnded else { continue }
            (port, self.ports, self.process) = (ports[3], ports, Locked(process))
            return
        }
        throw DeadlineExceeded("SeaweedFS finds free ports")
    }

    private static func start(_ ports: [UInt16], _ data: TemporaryFolder) async throws -> ChildProcess {
        let command =
            "exec \(binary) mini -ip 127.0.0.1 -ip.bind 127.0.0.1 -dir \(data.file("data")) -master.telemetry=false"
            + " -master.port \(ports[0]) -volume.port \(ports[1]) -filer.port \(ports[2]) -s3.port \(ports[3])"
            + " -s3.port.iceberg 0 -s3.port.lance 0 -s3.config \(data.file("s3.json")) -webdav=false -admin.ui=false"
            + " -bucket bucket >\(data.file("log")) 2>&1"
        return try await ChildProcess(
            ["/bin/sh", "-c", command], environment: ["GOMEMLIMIT=200MiB", "HOME=\(data.path)"])
    }

    /// A new prefix of the bucket.
    package func folder() -> BucketFolder { BucketFolder(self, "\(RandomBytes.make(6).hexadecimal)/") }

    /// The environment with valid credentials.
    package static let environment = ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"]

    fileprivate static func client(_ port: UInt16, prefix: String) throws -> BucketClient {
        let endpoint = ParsedURL(
            text: "http://127.0.0.1:\(port)/", isSecure: false, host: "127.0.0.1", port: port)
        return BucketClient(
            Bucket(name: "bucket", prefix: prefix, region: "us-east-1", endpoint: endpoint, style: .path),
            credentials: CredentialsSource(BucketCredentials(accessKeyID: "id", secretAccessKey: "secret")),
            exchanges: try exchanges.get(),
            egress: EgressPolicy(allowed: [CIDR(.v4(0x7F00_0000), 8)]), clock: .system)
    }

    /// Kills the server; stored objects stay.
    package func kill() { process.withLock { $0 = nil } }

    /// Restarts the server on the same ports, repeatedly if another program uses one of them for a moment.
    package func start() async throws {
        try await eventually("SeaweedFS is back") {
            if process.withLock({ $0?.hasEnded ?? true }) {
                let next = try await Self.start(ports, data)
                process.withLock { $0 = next }
            }
            return await Self.answers(port)
        }
    }

    private static func answers(_ port: UInt16) async -> Bool {
        do {
            // The server listens before it has the bucket.
            _ = try await client(port, prefix: "").objects(below: "")
            return true
        } catch { return false }
    }
}

/// A server that concurrent tests share.
package actor SharedSeaweedFS {
    private static let one = SharedSeaweedFS()

    private weak var current: SeaweedFS?
    private var starting: Task<SeaweedFS, any Error>?

    /// A folder in the shared server, which is removed with its last folder.
    package static func folder() async throws -> BucketFolder { try await one.get().folder() }

    private func get() async throws -> SeaweedFS {
        if let current { return current }
        let task = starting ?? Task { try await SeaweedFS() }
        starting = task
        let started = try await task.value
        current = started
        starting = nil
        return started
    }
}

/// The objects of a bucket below a prefix.
package struct BucketFolder: Sendable {
    package let store: SeaweedFS
    private let prefix: String

    fileprivate init(_ store: SeaweedFS, _ prefix: String) {
        self.store = store
        self.prefix = prefix
    }

    /// The arguments for `--bucket`: this folder under a name.
    ///
    /// - Parameter port: The port of a proxy for the server, if there is one.
    package func setting(_ name: String = "b", bucket: String = "bucket", through port: UInt16? = nil) -> [String] {
        ["--bucket", "\(name)=s3://\(bucket)/\(prefix)?endpoint=http://127.0.0.1:\(port ?? store.port)"]
    }

    /// The arguments for `--contents`.
    package var contents: [String] { contents(through: store.port) }

    /// - Parameter port: The port of a proxy for the server.
    package func contents(through port: UInt16) -> [String] {
        ["--contents", "s3://bucket/\(prefix)?endpoint=http://127.0.0.1:\(port)"]
    }

    /// The keys of all objects, without the service's probes.
    package func keys() async throws -> [String] {
        var keys: [String] = []
        while case let page = try await client.objects(below: "", after: keys.last).map(\.key), !page.isEmpty {
            keys += page
        }
        return keys.filter { !$0.contains(".urlsessiond-probe") }
    }

    /// Uploads that were neither completed nor aborted.
    package func uploads() async throws -> Int { try await client.uploads(below: "").uploads.count }

    private var client: BucketClient { get throws { try SeaweedFS.client(store.port, prefix: prefix) } }

    /// The bytes of an object; `nil` if it does not exist.
    package func content(_ key: String) async throws -> [UInt8]? {
        let client = try client
        let target = client.bucket.target(key)
        let fields = try await client.fields(toGet: target).fields.map { ($0.name, $0.value) }
        let answer = try await APIClient(port: store.port, key: nil).send("GET", target.path, headers: fields)
        return answer.status == 200 ? answer.body : nil
    }

    /// Uploads of an object that were neither completed nor aborted.
    package func uploads(of key: String) async throws -> Int { try await client.uploads(of: key).count }
}
