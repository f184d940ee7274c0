import TestSupport
import Testing

/// The data of `task.didFinishCollectingMetrics` for each request, as in `URLSessionTaskMetrics`.
@Suite struct MetricsTests {
    private static let members: Set<String> = [
        "url", "statusCode", "error", "offset", "fetchStartDate", "domainLookupStartDate", "domainLookupEndDate",
        "connectStartDate", "secureConnectionStartDate", "secureConnectionEndDate", "connectEndDate",
        "requestStartDate", "requestEndDate", "responseStartDate", "responseEndDate", "networkProtocolName",
        "negotiatedTLSProtocolVersion", "negotiatedTLSCipherSuite", "isReusedConnection", "isProxyConnection",
        "localAddress", "localPort", "remoteAddress", "remotePort", "countOfRequestHeaderBytesSent",
        "countOfRequestBodyBytesSent", "countOfResponseHeaderBytesReceived", "countOfResponseBodyBytesReceived",
    ]

    /// The dates in order of time.
    private static let dates = [
        "fetchStartDate", "domainLookupStartDate", "domainLookupEndDate", "connectStartDate",
        "secureConnectionStartDate", "secureConnectionEndDate", "connectEndDate", "requestStartDate", "requestEndDate",
        "responseStartDate", "responseEndDate",
    ]
    private static let lookup: Set<String> = ["domainLookupStartDate", "domainLookupEndDate"]
    private static let connection: Set<String> = ["connectStartDate", "connectEndDate"]
    private static let security: Set<String> = ["secureConnectionStartDate", "secureConnectionEndDate"]

    /// The transactions of a completed task, after common checks.
    private func transactions(
        of number: Int, in session: String = "s", _ scene: Scene, redirects: Int = 0,
        location: SourceLocation = #_sourceLocation
    ) async throws -> [JSON] {
        let task = try await scene.completed(number, in: session)
        let event = try await scene.event("metrics of \(number)", in: session) {
            $0["type"] == "task.didFinishCollectingMetrics" && $0["taskIdentifier"].int == number
        }
        let data = event["data"]
        #expect(data["taskInterval"]["start"] == task["createdAt"], "\(data)", sourceLocation: location)
        #expect(data["taskInterval"]["duration"].double ?? 0 > 0, "\(data)", sourceLocation: location)
        #expect(data["redirectCount"].int == redirects, "\(data)", sourceLocation: location)
        let all = data["transactionMetrics"].array ?? []
        for one in all {
            #expect(Set(one.object?.keys.map { $0 } ?? []) == Self.members, "\(one)", sourceLocation: location)
            let known = Self.dates.compactMap { one[$0].string }
            // RFC 3339 in UTC sorts as text. TLS is part of connecting.
            #expect(known == known.sorted(), "\(one)", sourceLocation: location)
        }
        return all
    }

    /// Expects a request with a response, whose dates are those of a whole exchange without `missing`.
    private func expectWhole(
        _ one: JSON, without missing: Set<String>, _ status: Int = 200, location: SourceLocation = #_sourceLocation
    ) {
        let absent = Set(Self.dates.filter { one[$0].isNull })
        #expect(absent == missing, "\(one)", sourceLocation: location)
        #expect(one["statusCode"].int == status && one["error"].isNull, "\(one)", sourceLocation: location)
        #expect(one["countOfRequestHeaderBytesSent"].int ?? 0 > 20, "\(one)", sourceLocation: location)
        #expect(one["countOfResponseHeaderBytesReceived"].int ?? 0 > 20, "\(one)", sourceLocation: location)
        #expect(
            one["localAddress"] == "127.0.0.1" && one["localPort"].int ?? 0 > 0 && one["remoteAddress"] == "127.0.0.1",
            "\(one)", sourceLocation: location)
    }

    @Test func `A new connection, a reused one, a name, a redirect and an upload are each measured`() async throws {
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 1])
        scene.origin.serve("/a", .generated(seed: 1, length: 50_000), always: [.delayHead(.milliseconds(20))])
        scene.origin.serve("/r", .text("x"), always: [.redirect("/a")])
        scene.origin.serve("/u", .upload(status: 201))
        let port = Int(scene.origin.port)

        let first = try await transactions(of: try await scene.download("/a"), scene)
        try #require(first.count == 1)
        expectWhole(first[0], without: Self.lookup.union(Self.security))
        #expect(first[0]["url"].string == scene.origin.url("/a") && first[0]["offset"] == 0)
        #expect(first[0]["networkProtocolName"] == "http/1.1" && first[0]["isReusedConnection"] == false)
        #expect(first[0]["isProxyConnection"] == false && first[0]["remotePort"].int == port, "\(first[0])")
        #expect(first[0]["negotiatedTLSProtocolVersion"].isNull && first[0]["negotiatedTLSCipherSuite"].isNull)
        #expect(first[0]["countOfResponseBodyBytesReceived"] == 50_000)
        #expect(first[0]["countOfRequestBodyBytesSent"] == 0)

        let redirected = try await transactions(of: try await scene.download("/r"), scene, redirects: 1)
        try #require(redirected.count == 2)
        let used = Self.lookup.union(Self.security).union(Self.connection)
        for (one, (path, status)) in zip(redirected, [("/r", 302), ("/a", 200)]) {
            expectWhole(one, without: used, status)
            #expect(one["isReusedConnection"] == true && one["url"].string == scene.origin.url(path), "\(one)")
        }

        let named: JSON = ["url": .string("http://localhost:\(port)/a")]
        let looked = try await transactions(of: try await scene.download("/", ["request": named]), scene)
        #expect(!looked[0]["domainLookupStartDate"].isNull && !looked[0]["domainLookupEndDate"].isNull, "\(looked[0])")
        #expect(!looked[0]["connectEndDate"].isNull && looked[0]["isReusedConnection"] == false, "\(looked[0])")

        let body = Content.bytes(seed: 2, length: 30_000)
        let upload = try await transactions(
            of: try await scene.upload("/u", body: ["base64": .string(Base64Text.encode(body))]), scene)
        let last = try #require(upload.last)
        expectWhole(last, without: used, 201)
        #expect(last["countOfRequestBodyBytesSent"] == 30_000, "\(last)")
    }

    @Test func `The metrics of failed attempts show their last phase`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]])
        let gone = try OriginServer()
        let port = gone.port
        gone.stop()
        let refused = try await scene.download("/", ["request": ["url": "http://127.0.0.1:\(port)/a"]])
        try await scene.waitFor("has failed", task: refused) { !$0["attempts"]["last"]["error"].isNull }
        let back = try OriginServer(port: port, serving: ["/a": .text("x")])
        defer { back.stop() }
        let attempts = try await transactions(of: refused, scene)
        try #require(attempts.count >= 2)
        for attempt in attempts.dropLast() {
            #expect(attempt["error"] == "cannotConnectToHost" && attempt["statusCode"].isNull, "\(attempt)")
            let known = Set(Self.dates.filter { !attempt[$0].isNull })
            #expect(known == ["fetchStartDate", "connectStartDate"], "\(attempt)")
            #expect(attempt["networkProtocolName"].isNull && attempt["isReusedConnection"] == false, "\(attempt)")
            #expect(attempt["countOfRequestHeaderBytesSent"] == 0, "\(attempt)")
        }
        expectWhole(try #require(attempts.last), without: Self.lookup.union(Self.security))

        scene.origin.serve("/cut", .generated(seed: 1, length: 300_000), turns: [[.cut(after: 200_000)]])
        let cut = try await transactions(of: try await scene.download("/cut"), scene)
        try #require(cut.count == 2)
        #expect(cut[0]["error"] == "networkConnectionLost" && cut[0]["statusCode"] == 200, "\(cut[0])")
        #expect(cut[0]["countOfResponseBodyBytesReceived"] == 200_000 && !cut[0]["responseStartDate"].isNull)
        #expect(cut[1]["offset"] == 200_000 && cut[1]["statusCode"] == 206, "\(cut[1])")
        #expect(cut[1]["countOfResponseBodyBytesReceived"] == 100_000, "\(cut[1])")
    }

    @Test func `A proxy is the peer of the connection`() async throws {
        let scene = try await Scene(configuration: nil)
        scene.origin.serve("/a", .text("x"))
        let socks = try SocksServer()
        for (type, port) in [("http", scene.origin.port), ("socks5", socks.port)] {
            let proxy: JSON = ["type": .string(type), "host": "127.0.0.1", "port": .integer(Int(port))]
            try await scene.makeSession(type, ["proxy": proxy])
            // The origin also understands requests to a proxy.
            let number = try await scene.download("/a", in: type)
            let one = try #require(try await transactions(of: number, in: type, scene).last)
            #expect(one["isProxyConnection"] == true && one["remotePort"].int == Int(port), "\(one)")
            #expect(Set(Self.dates.filter { one[$0].isNull }) == Self.lookup.union(Self.security), "\(one)")
        }
    }

    @Test(.enabled(if: Nginx.isAvailable, "nginx and openssl are needed"), arguments: [Nginx.Manner.http2, .secure])
    func `TLS has its own times, version and cipher in the metrics`(_ manner: Nginx.Manner) async throws {
        let nginx = try await Nginx("location = /r { return 302 /a; }")
        nginx.folder.write(Content.bytes(seed: 1, length: 10_000), to: "www/a")
        let scene = try await Scene(configuration: ["httpMaximumConnectionsPerHost": 1])
        let space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(nginx.port(manner))), "protocol": "https",
            "authenticationMethod": "ServerTrust",
        ]
        let credential: JSON = ["trustPublicKey": .string(try await nginx.pin())]
        expect(try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": credential]), 201)
        let number = try await scene.download("/", ["request": ["url": .string(nginx.url("/r", manner))]])
        let hops = try await transactions(of: number, scene, redirects: 1)
        try #require(hops.count == 2)
        expectWhole(hops[0], without: Self.lookup, 302)
        expectWhole(hops[1], without: Self.lookup.union(Self.security).union(Self.connection))
        for hop in hops {
            #expect(hop["networkProtocolName"] == (manner == .http2 ? "h2" : "http/1.1"), "\(hop)")
            #expect(hop["negotiatedTLSProtocolVersion"] == "TLSv1.3", "\(hop)")
            #expect(hop["negotiatedTLSCipherSuite"].string?.hasPrefix("TLS_") == true, "\(hop)")
        }
        #expect(hops[1]["isReusedConnection"] == true && hops[1]["countOfResponseBodyBytesReceived"] == 10_000)
    }
}
