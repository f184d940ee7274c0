import Core
import TestSupport
import Testing

/// docs/transfers.md "Segments and mirrors" with nginx, and with a server that requests a password within the download.
@Suite struct SegmentServerTests {
    private static let nginx: ConditionTrait = .enabled(if: Nginx.isAvailable, "nginx and openssl are needed")
    private static let configuration: JSON = ["httpMaximumConnectionsPerHost": 16]

    @Test(nginx, arguments: Nginx.Manner.allCases)
    func `nginx serves segments, without TLS, with it, and over HTTP/2`(_ manner: Nginx.Manner) async throws {
        let nginx = try await Nginx("limit_rate 4m;")
        let bytes = Content.bytes(seed: 1, length: 24 << 20)
        nginx.folder.write(bytes, to: "www/a")
        let scene = try await Scene(configuration: Self.configuration)
        if manner != .plain {
            let space: JSON = [
                "host": "127.0.0.1", "port": .integer(Int(nginx.port(manner))), "protocol": "https",
                "authenticationMethod": "ServerTrust",
            ]
            let key: JSON = ["trustPublicKey": .string(try await nginx.pin())]
            expect(try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": key]), 201)
        }
        let request: JSON = ["url": .string(nginx.url("/a", manner))]
        let number = try await scene.download("/", ["request": request, "segments": 6])
        try await scene.waitFor("connections beside each other", task: number) { task in
            (task["segmentStates"].array ?? []).count { $0["received"].int ?? 0 < $0["length"].int ?? 0 } >= 4
        }
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(of: bytes))
        let metrics = try await scene.event("its metrics") { $0["type"] == "task.didFinishCollectingMetrics" }
        let transactions = metrics["data"]["transactionMetrics"].array ?? []
        // One whole request, and each byte in one of them.
        #expect(transactions.count { $0["statusCode"] == 200 } == 1)
        #expect(transactions.count { $0["statusCode"] == 206 } == transactions.count - 1)
        #expect(Set(transactions.compactMap { $0["offset"].int }).count == transactions.count)
        #expect(transactions.count >= 6)
        let version: JSON = manner == .http2 ? "h2" : "http/1.1"
        #expect(transactions.allSatisfy { $0["networkProtocolName"] == version }, "\(transactions)")
    }

    @Test(arguments: ["useCredential", "cancelAuthenticationChallenge"])
    func `A password that is required within the download is requested once, and the answer decides`(
        _ disposition: String
    ) async throws {
        let scene = try await Scene(configuration: Self.configuration)
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let (size, gate) = (16 << 20, Gate())
        // Slower than the service reads, so that few bytes are in flight when a segment is shortened.
        let pace = Misbehaviour.trickle(size: 16 << 10, pause: .milliseconds(1))
        scene.origin.serve("/a", .generated(seed: 1, length: size), always: [.holdBody(after: 300_000, gate), pace])
        let number = try await scene.download("/a", ["segments": 4])
        try await eventually("four connections") { gate.waiting == 4 }
        // base64("u:p")
        let demand = Misbehaviour.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")
        scene.origin.serve("/a", .generated(seed: 1, length: size), always: [demand])
        gate.open()
        let question = try await eventually("a question is open") { () -> JSON? in
            try await scene.api.get("/v1/questions?session=s&state=open").json["items"].array?.first
        }
        #expect(question["protectionSpace"]["realm"] == "r", "\(question)")
        let asked = scene.origin.requests("/a").count
        try await stays("no further request is sent", for: .milliseconds(1500)) {
            scene.origin.requests("/a").count == asked
        }
        #expect(try await scene.task(number)["waitingFor"] != .null)

        var answer: JSON = ["disposition": .string(disposition)]
        if disposition == "useCredential" { answer["credential"] = ["user": "u", "password": "p"] }
        expect(try await scene.api.post("/v1/questions/\(question["questionId"].string ?? "")/answer", answer), 200)
        let task = try await scene.completed(number)
        let questions = try await scene.api.get("/v1/questions?session=s").json["items"].array ?? []
        #expect(questions.count == 1, "\(questions)")
        if disposition == "useCredential" {
            #expect(task["outcome"] == "succeeded", "\(task)")
            #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: size))
            // Received bytes are not fetched again; a refusal has two bytes.
            #expect(scene.origin.bytesSent("/a") < size + (1 << 20))
        } else {
            #expect(task["outcome"] == "cancelled", "\(task)")
            #expect(scene.origin.requests("/a").count == asked)
        }
    }

    @Test func `A mirror that requires a password gets the one stored for it when no other source is left`()
        async throws
    {
        let scene = try await Scene(configuration: Self.configuration)
        // With a receiver the refusal would become a question, which the stored credential answers again and again.
        try await scene.launches(to: Receiver())
        let mirror = try OriginServer()
        let (size, piece) = (4 << 20, 1 << 20)
        let bytes = Content.bytes(seed: 1, length: size)
        var lie = bytes
        for index in stride(from: 100, to: size, by: piece) { lie[index] ^= 1 }
        scene.origin.serve("/a", Resource(.bytes(lie), etag: "\"a\""))
        // base64("u:p")
        let demand = Misbehaviour.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")
        mirror.serve("/a", Resource(.bytes(bytes), etag: "\"b\""), always: [demand])
        let space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(mirror.port)), "protocol": "http", "realm": "r",
            "authenticationMethod": "HTTPBasic",
        ]
        expect(
            try await scene.api.post(
                "/v1/credentials", ["protectionSpace": space, "credential": ["user": "u", "password": "p"]]), 201)
        let values = stride(from: 0, to: size, by: piece).map {
            JSON.string(Content.sha256(of: Array(bytes[$0..<$0 + piece])))
        }
        let number = try await scene.download(
            "/a",
            [
                "segments": 2, "mirrors": [.string(mirror.url("/a"))],
                "pieces": ["length": .integer(piece), "algorithm": "sha-256", "values": .array(values)],
            ])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(of: bytes))
        let questions = try await scene.api.get("/v1/questions?session=s").json["items"].array ?? []
        #expect(questions.isEmpty, "\(questions)")
        #expect(scene.origin.requests("/a").allSatisfy { $0.fields["Authorization"] == nil })
    }
}
