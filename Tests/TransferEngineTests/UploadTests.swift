import Base
import Core
import Files
import Glibc
import TestSupport
import Testing
import TransferEngine

@Suite struct UploadTests {
    /// More than one piece of read-ahead; cheaper to produce than different bytes.
    private var longContent: [UInt8] {
        let part = Content.bytes(seed: 3, length: 70_001)
        return (0..<40).reduce(into: []) { content, _ in content += part }
    }

    @Test func `Bytes and files arrive unchanged`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let content = Content.bytes(seed: 1, length: 2_000_000)
        let path = harness.folder.write([9, 9, 9] + content + [9, 9], to: "body")
        let bodies: [ExchangeBody] = [.bytes(content), .file(path: path, offset: 3, length: 2_000_000)]
        for body in bodies {
            let result = try await harness.run(
                harness.request("/") {
                    $0.method = "PUT"
                    $0.body = body
                })
            #expect(result.outcome == .complete)
            #expect(result.head?.status == 201)
            #expect(result.bytesSent == 2_000_000)
        }
        for request in harness.origin.requests {
            #expect(request.method == "PUT")
            #expect(request.bodySHA256 == Content.sha256(seed: 1, length: 2_000_000))
            #expect(request.fields["Content-Length"] == "2000000")
        }
    }

    @Test func `The engine adds only header fields that HTTP requires`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        try await harness.run(harness.request("/") { $0.headers = HTTPFields([HTTPField(name: "X-a", value: "1")]) })
        try await harness.run(harness.request("/") { $0.method = "POST" })
        try await harness.run(
            harness.request("/") {
                $0.method = "PATCH"
                $0.body = .bytes([1, 2])
                $0.headers = HTTPFields([
                    HTTPField(name: "Content-Length", value: "77"), HTTPField(name: "X-Empty", value: ""),
                    HTTPField(name: "Expect", value: "100-continue"), HTTPField(name: "Accept", value: "a/b"),
                ])
            })
        let names = harness.origin.requests.map { $0.fields.fields.map(\.name) }
        #expect(
            names == [["Host", "X-a"], ["Host", "Content-Length"], ["Host", "X-Empty", "Accept", "Content-Length"]])
        #expect(harness.origin.requests.map { $0.fields["Content-Length"] } == [nil, "0", "2"])
    }

    @Test func `An upload respects its bandwidth limit`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let start = ContinuousClock.now
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes(Content.bytes(seed: 2, length: 300_000))
                $0.bandwidthLimit = 200_000
            })
        #expect(result.outcome == .complete)
        #expect(start.duration(to: .now) > .milliseconds(1000))
        #expect(harness.origin.requests.first?.bodySHA256 == Content.sha256(seed: 2, length: 300_000))
    }

    @Test func `An empty body is sent as a body`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes([])
            })
        #expect(result.outcome == .complete)
        #expect(harness.origin.requests.first?.fields["Content-Length"] == "0")
    }

    @Test func `A missing or short file is a fault of the sender`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let short = harness.folder.write([1, 2, 3], to: "short")
        let missing = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: harness.folder.file("missing"), offset: 0, length: 3)
            })
        #expect(missing.outcome == .failed(.bodySource(errno: 2)))
        let cut = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: short, offset: 0, length: 10)
            })
        guard case .failed(.bodySource) = cut.outcome else {
            Issue.record("\(cut.outcome)")
            return
        }
    }

    @Test func `Long files arrive unchanged, more of them than there are buffers`() async throws {
        let harness = try EngineHarness(buffers: 4)
        harness.origin.serve("/", .upload())
        let content = longContent
        let length = Int64(content.count)
        let path = harness.folder.write([9, 9, 9] + content + [9, 9], to: "body")
        let requests = (0..<5).map { _ in
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: 3, length: length)
            }
        }
        for request in requests { harness.engine.start(request) }
        for request in requests {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .complete)
            #expect(result.bytesSent == length)
        }
        let digest = Content.sha256(of: content)
        #expect(harness.origin.requests.map(\.bodySHA256) == Array(repeating: digest, count: 5))
    }

    @Test func `A long file is sent from its start after a digest challenge`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")], body: "no")
        harness.origin.serve("/", .upload(), turns: [[challenge]])
        let content = longContent
        let path = harness.folder.write(content, to: "body")
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: 0, length: Int64(content.count))
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(result.outcome == .complete)
        #expect(harness.origin.requests.last?.bodySHA256 == Content.sha256(of: content))
        #expect(result.bytesSent == Int64(content.count))
    }

    @Test func `A long file that shrank is a fault of the sender`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let path = harness.folder.write(longContent, to: "body")
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: 0, length: 5_000_000)
            })
        #expect(result.outcome == .failed(.bodySource(errno: ENODATA)))
    }

    @Test(arguments: [0, 100_000, 2_000_000] as [Int64], [false, true])
    func `A body that differs from its digest is not sent completely`(_ offset: Int64, _ isDamaged: Bool) async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        var content = longContent
        let digest = Digest.of(content)
        if isDamaged { content[50_000] ^= 1 }
        let path = harness.folder.write(content, to: "body")
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: offset, length: Int64(content.count) - offset)
                $0.bodySHA256 = digest
            })
        #expect(result.outcome == (isDamaged ? .failed(.bodyDamaged) : .complete))
        #expect((result.bytesSent == Int64(content.count) - offset) != isDamaged)
    }

    @Test(arguments: [0, 2] as [Int64], [false, true])
    func `The sent part of a body in memory is compared with the digest of the whole`(
        _ offset: Int64, _ isDamaged: Bool
    ) async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes([isDamaged ? 0 : 1, 2, 3, 4], offset: offset)
                $0.bodySHA256 = Digest.of([1, 2, 3, 4])
            })
        #expect(result.outcome == (isDamaged ? .failed(.bodyDamaged) : .complete))
        let body = Array([1, 2, 3, 4].dropFirst(Int(offset))) as [UInt8]
        #expect(harness.origin.requests("/").contains { $0.body == body } == !isDamaged)
    }

    @Test func `A body in memory is compared each time that it is sent`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")], body: "no")
        harness.origin.serve("/", .upload(), turns: [[challenge], [], [challenge]])
        for (digest, outcome) in [(Digest.of([1, 2, 3]), ExchangeOutcome.complete), ([1], .failed(.bodyDamaged))] {
            let result = try await harness.run(
                harness.request("/") {
                    $0.method = "PUT"
                    $0.body = .bytes([1, 2, 3])
                    $0.bodySHA256 = digest
                    $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
                })
            #expect(result.outcome == outcome)
        }
    }

    @Test func `An unreadable file is a fault of the sender`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: harness.folder.path, offset: 0, length: 10)
            })
        #expect(result.outcome == .failed(.bodySource(errno: EISDIR)))
    }

    @Test func `A long upload that waits for the disk ends at once when it is stopped`() async throws {
        let harness = try EngineHarness()
        let gate = Gate()
        harness.origin.serve("/", .upload())
        let content = longContent
        let path = harness.folder.write(content, to: "body")
        let request = harness.request("/") {
            $0.method = "PUT"
            $0.body = .file(path: path, offset: 0, length: Int64(content.count))
            $0.bandwidthLimit = 200_000
        }
        harness.engine.start(request)
        try await eventually("it is sent") { (harness.engine.progress(request.id)?.bytesSent ?? 0) > 0 }
        try await hold(harness.engine.disk, gate)
        harness.engine.stop(request.id)
        let result = try await harness.result(of: request)
        #expect(result.outcome == .stopped)
        #expect(result.bytesSent < content.count)
        gate.open()
    }

    /// Blocks both disk threads until the gate opens.
    private func hold(_ disk: DiskQueue, _ gate: Gate) async throws {
        for _ in 0..<2 {
            disk.run {
                gate.pass()
            } then: { _ in
            }
        }
        try await eventually("the disk does nothing") { gate.waiting == 2 }
    }

    @Test func `A slow disk delays one upload and no other, without an idle timeout`() async throws {
        let harness = try EngineHarness()
        let gate = Gate()
        harness.origin.serve("/", .upload())
        harness.origin.serve("/other", .text("other"))
        let length = 24 << 20
        let path = harness.folder.write([], to: "body")
        truncate(path, off_t(length))
        let request = harness.request("/") {
            $0.method = "PUT"
            $0.body = .file(path: path, offset: 0, length: Int64(length))
            $0.bandwidthLimit = 1_000_000
            $0.idleTimeout = .seconds(2)
        }
        harness.engine.start(request)
        try await eventually("it is sent") { (harness.engine.progress(request.id)?.bytesSent ?? 0) > 0 }
        try await hold(harness.engine.disk, gate)
        harness.engine.setBandwidthLimit(request.id, nil)
        try await eventually("it waits") { (harness.engine.progress(request.id)?.bytesSent ?? 0) >= 1 << 20 }
        try await stays("it waits", for: .milliseconds(2500)) {
            (harness.engine.progress(request.id)?.bytesSent ?? .max) < length
        }
        let other = try await harness.run(harness.request("/other") { $0.sink = .memory(limit: 100) })
        #expect(other.outcome == .complete)
        gate.open()
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete)
        #expect(result.bytesSent == Int64(length))
    }

    @Test func `An early refusal is the response`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("too much", status: 413), always: [.earlyAnswer])
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes(Array(repeating: 1, count: 8_000_000))
            })
        #expect(result.head?.status == 413)
        #expect(result.outcome == .complete)
    }

    @Test func `An interrupted upload is reported`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload(), always: [.cutUpload(after: 100_000, .reset)])
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes(Array(repeating: 1, count: 8_000_000))
            })
        #expect([.failed(.reset), .failed(.emptyReply)].contains(result.outcome))
    }

    @Test func `Basic credentials are sent at once, and wrong ones get a response`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("no", status: 401))
        let result = try await harness.run(
            harness.request("/") { $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p") })
        #expect(result.outcome == .complete)
        #expect(result.head?.status == 401)
        #expect(harness.origin.requests.map { $0.fields["Authorization"] } == ["Basic dTpw"])
    }

    @Test func `A digest challenge is answered before the response is judged`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")], body: "no")
        harness.origin.serve("/", .upload(), turns: [[challenge]])
        let heads = Locked<[Int]>([])
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .bytes([1, 2, 3])
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
                $0.judge = { head in
                    heads.withLock { $0.append(head.status) }
                    return .keep(at: 0)
                }
            })
        #expect(result.outcome == .complete)
        #expect(result.head?.status == 201)
        #expect(heads.withLock { $0 } == [201])
        #expect(harness.origin.requests.last?.body == [1, 2, 3])
        #expect(harness.origin.requests.last?.fields["Authorization"]?.hasPrefix("Digest username=\"u\"") == true)
    }

    @Test func `A digest challenge that is always stale is answered twice, and then the response`() async throws {
        let harness = try EngineHarness()
        let challenge = "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5, stale=true"
        harness.origin.serve("/", .text("x"), always: [.status(401, [("WWW-Authenticate", challenge)], body: "no")])
        let result = try await harness.run(
            harness.request("/") {
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(result.outcome == .complete)
        #expect(result.head?.status == 401)
        #expect(harness.origin.requests.map { $0.fields.contains("Authorization") } == [false, true, true])
    }

    @Test(arguments: ["PUT", "POST"])
    func `A request with a digest credential is sent completely without a challenge`(_ method: String) async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .upload())
        let result = try await harness.run(
            harness.request("/") {
                $0.method = method
                $0.body = .bytes([1, 2, 3])
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(result.head?.status == 201)
        #expect(harness.origin.requests.map(\.body) == [[1, 2, 3]])
    }

    @Test func `A connection with a former digest credential sends other bodies completely`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/gone", .text("no", status: 404))
        harness.origin.serve("/", .upload())
        let body = ExchangeBody.bytes(Array(repeating: 7, count: 10_000))
        let first = try await harness.run(
            harness.request("/gone") {
                $0.method = "PUT"
                $0.body = body
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(first.head?.status == 404)
        let second = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = body
            })
        #expect(second.metrics.isReusedConnection && second.bytesSent == 10_000)
        #expect(harness.origin.requests.map(\.bodyLength) == [10_000, 10_000])
    }

    @Test func `A long body waits for the challenge, and is sent once`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")], body: "no")
        harness.origin.serve("/", .upload(), turns: [[.earlyAnswer, challenge]])
        let content = longContent
        let path = harness.folder.write(content, to: "body")
        let result = try await harness.run(
            harness.request("/") {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: 0, length: Int64(content.count))
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(result.head?.status == 201)
        #expect(harness.origin.requests.map { $0.fields["Expect"] } == ["100-continue", "100-continue"])
        #expect(harness.origin.requests.last?.bodySHA256 == Content.sha256(of: content))
        #expect(result.bytesSent == Int64(content.count))
    }

    @Test func `A persistent digest challenge is the response, body included`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\", algorithm=MD5")], body: "no")
        harness.origin.serve("/", .text(""), always: [challenge])
        let result = try await harness.run(
            harness.request("/") {
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(result.outcome == .complete)
        #expect(result.head?.status == 401)
        #expect(result.side == Array("no".utf8))
    }
}
