import Base
import Core
import TestSupport
import Testing

@Suite struct ContentTests {
    @Test func `Content does not depend on how it is split`() {
        let whole = Content.bytes(seed: 7, length: 1000)
        for (start, end) in [(0, 1), (3, 20), (8, 16), (500, 1000), (999, 1000), (12, 12)] {
            #expect(Content.bytes(seed: 7, range: start..<end) == Array(whole[start..<end]))
        }
        #expect(Content.sha256(seed: 7, length: 1000) == Content.sha256(of: whole))
        #expect(Content.bytes(seed: 8, length: 1000) != whole)
    }
}

@Suite struct JSONTests {
    @Test func `Text survives a round trip`() throws {
        let text = #"{"a":[1,-2.5,null,true,"x\ny\u00e9\ud83d\ude00"],"b":{}}"#
        let value = try JSON(parsing: text)
        #expect(value["a"][0].int == 1)
        #expect(value["a"][1].double == -2.5)
        #expect(value["a"][4].string == "x\nyé😀")
        #expect(try JSON(parsing: value.bytes) == value)
        #expect(value.has("b"))
        #expect(value["nowhere"]["deep"].isNull)
    }

    @Test(arguments: ["", "{", #"{"a":1,"a":2}"#, "[1,]", "01x", #""\ud800""#, "nul", "1 2", "+1"])
    func `Text that is not JSON is refused`(_ text: String) {
        #expect(throws: JSON.Malformed.self) { try JSON(parsing: text) }
    }
}

@Suite struct WebhookSignatureTests {
    /// The vectors of the Standard Webhooks reference libraries.
    @Test(arguments: [
        (
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330",
            #"{"test": 2432232314}"#, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        ),
        (
            "whsec_plJ3nmyCDGBKInavdOK15jsl", "msg_loFOjxBNrRLzqYUf", "1731705121",
            #"{"event_type":"ping","data":{"success":true}}"#, "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="
        ),
    ])
    func `The vectors of the reference libraries are verified`(
        _ secret: String, _ id: String, _ timestamp: String, _ body: String, _ signature: String
    ) {
        #expect(
            WebhookSignature.sign(secret: secret, id: id, timestamp: timestamp, body: Array(body.utf8)) == signature)
    }
}

@Suite struct OriginTests {
    private let origin: OriginServer
    private var client: APIClient { APIClient(port: origin.port, key: nil) }

    init() throws { origin = try OriginServer() }

    @Test func `A resource is served completely and in ranges`() async throws {
        origin.serve("/a", .generated(seed: 3, length: 100_000))
        let whole = try await client.get("/a?query=1")
        #expect(whole.status == 200)
        #expect(whole.body == Content.bytes(seed: 3, length: 100_000))
        let rest = try await client.get("/a", headers: [("Range", "bytes=99000-"), ("If-Range", "\"v3\"")])
        #expect(rest.status == 206)
        #expect(rest.body == Content.bytes(seed: 3, range: 99_000..<100_000))
        #expect(rest.fields["Content-Range"] == "bytes 99000-99999/100000")
        let changed = try await client.get("/a", headers: [("Range", "bytes=99000-"), ("If-Range", "\"old\"")])
        #expect(changed.status == 200)
        #expect(try await client.get("/a", headers: [("Range", "bytes=100000-")]).status == 416)
        #expect(try await client.get("/a", headers: [("If-None-Match", "\"v3\"")]).status == 304)
        #expect(try await client.get("/nowhere").status == 404)
        #expect(origin.requests("/a").map(\.bytesSent) == [100_000, 1000, 100_000, 14, 0])
    }

    @Test func `Misbehaviours are applied in order, then the origin behaves`() async throws {
        let gate = Gate()
        origin.serve(
            "/b", .generated(seed: 4, length: 5000),
            turns: [
                [.cut(after: 100)], [.cut(after: 100, .reset)], [.contentLength(["10", "20"])],
                [.raw("HTTP/1.1 abc\r\n\r\n")], [.noAnswer()], [.status(503, [("Retry-After", "7")], body: "busy")],
                [.chunked(size: 999)], [.hold(gate), .become(.generated(seed: 5, length: 10))],
            ])
        for _ in 1...2 { await #expect(throws: (any Error).self) { try await client.get("/b") } }
        #expect(origin.requests("/b").map(\.bytesSent) == [100, 100])
        #expect(try await client.get("/b").fields.values("Content-Length") == ["10", "20"])
        for _ in 1...2 { await #expect(throws: (any Error).self) { try await client.get("/b") } }
        let busy = try await client.get("/b")
        #expect(busy.status == 503)
        #expect(busy.fields["Retry-After"] == "7")
        #expect(busy.text == "busy")
        #expect(try await client.get("/b").body == Content.bytes(seed: 4, length: 5000))
        async let held = client.get("/b")
        try await eventually("the gate holds") { gate.waiting == 1 }
        gate.open()
        #expect(try await held.body == Content.bytes(seed: 5, length: 10))
        #expect(try await client.get("/b").body == Content.bytes(seed: 5, length: 10))
    }

    @Test func `Uploads are recorded`() async throws {
        origin.serve("/up", .upload(status: 201, body: "thanks"))
        origin.serve("/echo", .echo)
        let bytes = Content.bytes(seed: 9, length: 70_000)
        let answer = try await client.send("PUT", "/up", body: bytes)
        #expect(answer.status == 201)
        #expect(answer.text == "thanks")
        let request = try #require(origin.requests("/up").first)
        #expect(request.bodySHA256 == Content.sha256(of: bytes))
        #expect(request.bodyLength == 70_000)
        #expect(try await client.send("POST", "/echo", body: bytes).body == bytes)
        let chunks = Array("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".utf8)
        let echoed = try await client.send("PUT", "/echo", headers: [("Transfer-Encoding", "chunked")], body: chunks)
        #expect(echoed.text == "abcde")
    }

    @Test func `A stalled response ends when the client disconnects`() async throws {
        origin.serve("/s", .generated(seed: 1, length: 100), turns: [[.stall(after: 10)]])
        let exchange = try await client.begin("GET", "/s")
        try await eventually("ten bytes are sent") { origin.bytesSent("/s") == 10 }
        exchange.abort()
        try await eventually("the origin lets go") { origin.openConnections == 0 }
    }

    @Test func `A stopped origin refuses connections`() async throws {
        origin.stop()
        await #expect(throws: (any Error).self) { try await client.get("/") }
        let again = try OriginServer(port: origin.port)
        #expect(try await client.get("/").status == 404)
        again.stop()
    }
}

@Suite struct ReceiverTests {
    @Test func `Responses follow the delivery number`() async throws {
        let receiver = try Receiver(answers: [.status(500), .close, .json(["completed": true]), .launched])
        let client = APIClient(port: receiver.port, key: nil)
        let secret = "whsec_" + Base64Text.encode([UInt8](repeating: 0, count: 32))
        let body = Array("{\"type\":\"x\"}".utf8)
        let signature = try #require(WebhookSignature.sign(secret: secret, id: "m", timestamp: "12", body: body))
        let headers = [("webhook-id", "m"), ("webhook-timestamp", "12"), ("webhook-signature", "v1,xx \(signature)")]
        #expect(try await client.send("POST", "/hook", headers: headers, body: body).status == 500)
        await #expect(throws: (any Error).self) { try await client.send("POST", "/hook", body: body) }
        #expect(try await client.send("POST", "/hook", body: body).json["completed"].bool == true)
        #expect(try await client.send("POST", "/hook", body: body).status == 204)
        let deliveries = try await receiver.waitForDelivery(count: 4, type: "x")
        #expect(deliveries[0].isSigned(with: secret))
        #expect(!deliveries[0].isSigned(with: "whsec_" + Base64Text.encode([UInt8](repeating: 1, count: 32))))
        #expect(!deliveries[2].isSigned(with: secret))
    }
}

@Suite struct EventStreamTests {
    @Test func `Events are read until the stream ends`() async throws {
        let origin = try OriginServer()
        let text = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hello\n\nid: 4\ndata: {\"seq\":4}\n\n"
        origin.serve("/events", .text(""), always: [.raw(text)])
        let stream = try await APIClient(port: origin.port).openStream("/events")
        let events = try await stream.wait { $0.count == 1 }
        #expect(events[0].id == "4")
        #expect(events[0].json["seq"].int == 4)
        try await eventually("the stream ends") { stream.hasEnded }
        #expect(stream.comments == 1)
    }
}

@Suite struct TemporaryFolderTests {
    @Test func `A folder is removed with its files`() {
        var folder: TemporaryFolder? = TemporaryFolder()
        folder?.makeFolder("a/b")
        let path = folder?.write([1, 2, 3], to: "a/b/c") ?? ""
        #expect(readFile(path) == [1, 2, 3])
        #expect(filesBelow(folder?.path ?? "") == ["a/b/c"])
        folder = nil
        #expect(readFile(path) == nil)
    }
}

@Suite struct Base64Tests {
    @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")])
    func `The examples of RFC 4648 hold`(_ text: String, _ encoded: String) {
        #expect(Base64Text.encode(Array(text.utf8)) == encoded)
        #expect(Base64Text.decode(encoded) == Array(text.utf8))
    }
}

@Suite struct ServiceProcessTests {
    /// A service that does not listen, but handles signals.
    private static let script = """
        #!/bin/sh
        trap 'exit 7' TERM
        mkdir -p "$4" && echo start >>"$4/starts"
        echo "urlsessiond listening on http://127.0.0.1:4711"
        echo "a line for the log" >&2
        while :; do sleep 0.05; done

        """

    private func makeService(_ script: String = Self.script) async throws -> ServiceProcess {
        let folder = TemporaryFolder()
        let path = folder.write(Array(script.utf8), to: "service")
        makeExecutable(path)
        return try await ServiceProcess(data: folder, binary: path)
    }

    @Test func `A service is started, killed, restarted and ended`() async throws {
        let service = try await makeService()
        #expect(service.port == 4711)
        let first = service.pid
        try await eventually("its log is collected") { service.errors == "a line for the log\n" }
        try await service.kill()
        #expect(service.exitStatus == .killed(9))
        try await service.start()
        #expect(service.pid != first && service.exitStatus == nil)
        #expect(readFile(service.data.file("data/starts")) == Array("start\nstart\n".utf8))
        #expect(try await service.terminate() == .exited(7))
    }

    @Test func `A service that does not listen is an error with its output`() async throws {
        let error = await #expect(throws: ServiceProcess.NotListening.self) {
            try await makeService("#!/bin/sh\necho no >&2\nexit 3\n")
        }
        #expect(error?.status == .exited(3) && error?.errors == "no\n")
    }
}
