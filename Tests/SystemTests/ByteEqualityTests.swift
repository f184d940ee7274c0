import Glibc
import TestSupport
import Testing

/// Files have the same bytes through curl, aria2 and the service.
@Suite(
    .enabled(
        if: Nginx.isAvailable && access("/usr/bin/curl", X_OK) == 0 && access("/usr/bin/aria2c", X_OK) == 0,
        "nginx, openssl, curl and aria2 are needed"))
struct ByteEqualityTests {
    private static let text = (0..<4000).map { "Line \($0) of a text that is easy to compress.\n" }.joined()

    private static let files: [(name: String, bytes: [UInt8])] = [
        ("empty.bin", []), ("one.bin", [0x0A]), ("text.txt", Array(text.utf8)),
        ("data.bin", Content.bytes(seed: 7, length: 3_000_001)),
    ]

    private struct Peers {
        let nginx: Nginx
        let manner: Nginx.Manner
        let folder = TemporaryFolder()

        func curl(_ name: String, coding: String?) async throws -> [UInt8]? {
            let version = manner == .http2 ? "--http2" : "--http1.1"
            let header = coding.map { ["-H", "Accept-Encoding: \($0)"] } ?? []
            try await ChildProcess.run(
                ["/usr/bin/curl", "-q", "-sS", "-f", version, "--cacert", nginx.certificate] + header
                    + ["-o", folder.file("curl"), "--create-dirs", nginx.url("/\(name)", manner)])
            // curl creates no file for an empty content.
            return readFile(folder.file("curl")) ?? []
        }

        /// aria2 removes the coding.
        func aria2(_ name: String, coding: String?) async throws -> [UInt8]? {
            try await ChildProcess.run([
                "/usr/bin/aria2c", "--no-conf", "-q", "--allow-overwrite=true", "--ca-certificate=\(nginx.certificate)",
                "--http-accept-gzip=\(coding == nil ? "false" : "true")", "-d", folder.path, "-o", "aria2",
                nginx.url("/\(name)", manner),
            ])
            return readFile(folder.file("aria2"))
        }

        func decoded(_ bytes: [UInt8]) async throws -> [UInt8]? {
            let coded = folder.write(bytes, to: "coded.gz")
            try await ChildProcess.run(["/bin/sh", "-c", "gzip -dc \(coded) > \(folder.file("decoded"))"])
            return readFile(folder.file("decoded"))
        }
    }

    private func make(_ manner: Nginx.Manner) async throws -> (Scene, Peers) {
        let nginx = try await Nginx(
            "gzip on; gzip_types text/plain; gzip_min_length 1; location /coded/ { add_header Content-Encoding gzip; }")
        for (name, bytes) in Self.files { nginx.folder.write(bytes, to: "www/\(name)") }
        let scene = try await Scene()
        if manner != .plain {
            let space: JSON = [
                "host": "127.0.0.1", "port": .integer(Int(nginx.port(manner))), "protocol": "https",
                "authenticationMethod": "ServerTrust",
            ]
            let credential: JSON = ["trustPublicKey": .string(try await nginx.pin())]
            expect(
                try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": credential]), 201)
        }
        return (scene, Peers(nginx: nginx, manner: manner))
    }

    /// The service's content of a file, with its digest checked, and the protocol of the transfer.
    private func fetched(_ name: String, _ scene: Scene, _ peers: Peers) async throws -> [UInt8] {
        let request: JSON = ["url": .string(peers.nginx.url("/\(name)", peers.manner))]
        let number = try await scene.download("/", ["request": request])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(name): \(task)")
        let bytes = try await scene.content(number).body
        #expect(task["content"]["digest"]["value"].string == Content.sha256(of: bytes), "\(name)")
        let metrics = try await scene.event("metrics of \(number)") {
            $0["type"] == "task.didFinishCollectingMetrics" && $0["taskIdentifier"].int == number
        }
        let version = metrics["data"]["transactionMetrics"][0]["networkProtocolName"]
        #expect(version == (peers.manner == .http2 ? "h2" : "http/1.1"), "\(metrics)")
        return bytes
    }

    @Test(arguments: Nginx.Manner.allCases)
    func `curl, aria2 and the service get the same bytes`(_ manner: Nginx.Manner) async throws {
        let (scene, peers) = try await make(manner)
        for (name, bytes) in Self.files {
            let own = try await fetched(name, scene, peers)
            #expect(own == bytes, "\(name)")
            #expect(try await peers.curl(name, coding: nil) == own, "\(name) through curl")
            #expect(try await peers.aria2(name, coding: nil) == own, "\(name) through aria2")
        }
        // The same server codes the responses to the others' requests. The service never requests a coding, and gets
        // the same content.
        let coded = try #require(try await peers.curl("text.txt", coding: "gzip"))
        #expect(coded.starts(with: [0x1F, 0x8B]) && coded.count < Self.text.utf8.count / 2, "\(coded.count) bytes")
        #expect(try await peers.decoded(coded) == Array(Self.text.utf8))
        #expect(try await peers.aria2("text.txt", coding: "gzip") == Array(Self.text.utf8))
    }

    @Test(arguments: Nginx.Manner.allCases)
    func `An unrequested coding is kept, as curl keeps it`(_ manner: Nginx.Manner) async throws {
        let (scene, peers) = try await make(manner)
        let coded = try #require(try await peers.curl("text.txt", coding: "gzip"))
        peers.nginx.folder.makeFolder("www/coded")
        peers.nginx.folder.write(coded, to: "www/coded/data.bin")
        let own = try await fetched("coded/data.bin", scene, peers)
        #expect(own == coded)
        #expect(try await peers.curl("coded/data.bin", coding: nil) == own)
        #expect(try await peers.decoded(own) == Array(Self.text.utf8))
    }
}
