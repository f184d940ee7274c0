import Core
import TestSupport
import Testing

/// docs/concepts.md "Questions" with real peers: nginx requests a password and a certificate, behind squid.
@Suite struct PeerAuthenticationTests {
    private static let nginx: ConditionTrait = .enabled(if: Nginx.isAvailable, "nginx and openssl are needed")
    private static let both: ConditionTrait = .enabled(
        if: Nginx.isAvailable && Squid.isAvailable, "nginx, squid and openssl are needed")
    private static let password: JSON = ["user": "u", "password": "p"]
    private static let wrong: JSON = ["user": "u", "password": "wrong"]

    /// Waits for an open question of the session other than the known ones.
    private func question(_ scene: Scene, _ session: String = "s", besides known: [JSON] = []) async throws -> JSON {
        let identifiers = known.map { $0["questionId"] }
        return try await eventually("a question is open") {
            let open = try await scene.api.get("/v1/questions?session=\(session)&state=open").json["items"].array
            if let found = open?.first(where: { !identifiers.contains($0["questionId"]) }) { return found }
            // An ended task asks no more: its end is reported.
            let tasks = try await scene.api.get("/v1/sessions/\(session)/tasks").json["items"].array ?? []
            try #require(tasks.contains { $0["state"] != "completed" }, "\(tasks)")
            return nil
        }
    }

    private func answer(_ scene: Scene, _ question: JSON, with credential: JSON) async throws {
        let path = "/v1/questions/\(question["questionId"].string ?? "")/answer"
        expect(try await scene.api.post(path, ["disposition": "useCredential", "credential": credential]), 200)
    }

    private func download(_ scene: Scene, _ url: String, in session: String = "s") async throws -> Int {
        try await scene.download("/", ["request": ["url": .string(url)]], in: session)
    }

    private func keep(_ scene: Scene, _ credential: JSON, for space: JSON) async throws {
        let made = try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": credential])
        expect(made, 201)
    }

    private func space(_ port: UInt16, _ scheme: String, _ method: String, realm: String? = nil) -> JSON {
        var space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(port)), "protocol": .string(scheme),
            "authenticationMethod": .string(method),
        ]
        if let realm { space["realm"] = .string(realm) }
        return space
    }

    /// A scene whose questions are answered.
    private func attended(_ configuration: JSON = [:]) async throws -> (Scene, Receiver) {
        let scene = try await Scene(configuration: configuration)
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        return (scene, receiver)
    }

    private static func proxy(_ port: UInt16, _ type: String = "http", _ more: [String: JSON] = [:]) -> JSON {
        var proxy: [String: JSON] = ["type": .string(type), "host": "127.0.0.1", "port": .integer(Int(port))]
        proxy.merge(more) { _, new in new }
        return ["proxy": .object(proxy)]
    }

    /// OpenSSL's own server, which ends handshakes without nginx's client certificate: in TLS 1.3 after the client's
    /// part.
    private func demandingServer(_ nginx: Nginx, _ version: String) async throws -> (port: UInt16, ChildProcess) {
        let folder = nginx.folder
        let (ports, server) = try await startOnFreePorts(1) { ports in
            [
                "/usr/bin/openssl", "s_server", "-accept", "127.0.0.1:\(ports[0])", "-cert", folder.file("server.pem"),
                "-key", folder.file("server.key"), "-CAfile", folder.file("client.pem"), "-Verify", "2",
                "-verify_return_error", version, "-www", "-quiet",
            ]
        } isReady: {
            true
        }
        return (ports[0], server)
    }

    /// A certificate of nginx, with its key.
    private func identity(_ name: String, of nginx: Nginx) -> JSON {
        ["certificate": .string(nginx.text("\(name).pem")), "key": .string(nginx.text("\(name).key"))]
    }

    // MARK: Servers

    @Test(nginx, arguments: [(Nginx.Manner.http2, "TLSv1.3"), (.secure, "TLSv1.2"), (.secure, "TLSv1.3")])
    func `Trust, password and certificate are requested one after the other`(
        _ manner: Nginx.Manner, _ version: String
    ) async throws {
        let nginx = try await Nginx(
            """
            ssl_client_certificate FOLDER/client.pem; ssl_verify_client on;
            location /a { auth_basic "the realm"; auth_basic_user_file FOLDER/users; }
            """, protocols: version)
        nginx.folder.write(Array("content".utf8), to: "www/a")
        let (scene, _) = try await attended()
        let number = try await download(scene, nginx.url("/a", manner))

        let trust = try await question(scene)
        #expect(trust["protectionSpace"]["authenticationMethod"] == "ServerTrust", "\(trust)")
        #expect(trust["protectionSpace"]["serverPublicKey"].string == (try await nginx.pin()), "\(trust)")
        try await answer(scene, trust, with: ["trustPublicKey": trust["protectionSpace"]["serverPublicKey"]])

        let certificate = try await question(scene, besides: [trust])
        #expect(certificate["protectionSpace"]["authenticationMethod"] == "ClientCertificate", "\(certificate)")
        #expect(certificate["previousFailureCount"] == 0 && certificate["failureResponse"]["statusCode"] == 400)
        try await answer(scene, certificate, with: identity("client", of: nginx))

        let login = try await question(scene, besides: [trust, certificate])
        let space = login["protectionSpace"]
        #expect(space["authenticationMethod"] == "HTTPBasic" && space["realm"] == "the realm", "\(login)")
        // Answers to other challenges are no failures of this one.
        #expect(login["previousFailureCount"] == 0, "\(login)")
        try await answer(scene, login, with: Self.wrong)
        let again = try await question(scene, besides: [trust, certificate, login])
        #expect(again["previousFailureCount"] == 1 && again["proposedCredential"]["user"] == "u", "\(again)")
        try await answer(scene, again, with: Self.password)

        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await scene.content(number).text == "content")
        let all = try await scene.api.get("/v1/questions?session=s").json["items"].array ?? []
        #expect(all.count == 4, "\(all)")
        expectSound(try await scene.events())
    }

    @Test(nginx) func `A client certificate that the server refuses is requested again`() async throws {
        let nginx = try await Nginx()
        let (port, server) = try await demandingServer(nginx, "-tls1_3")
        let (scene, _) = try await attended(["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2]])
        try await keep(
            scene, ["trustPublicKey": .string(try await nginx.pin())], for: space(port, "https", "ServerTrust"))
        let number = try await download(scene, "https://127.0.0.1:\(port)/")
        let first = try await question(scene)
        #expect(first["protectionSpace"]["authenticationMethod"] == "ClientCertificate", "\(first)")
        try await answer(scene, first, with: identity("server", of: nginx))
        let second = try await question(scene, besides: [first])
        #expect(second["protectionSpace"]["authenticationMethod"] == "ClientCertificate", "\(second)")
        #expect(second["previousFailureCount"] == 1, "\(second)")
        try await answer(scene, second, with: identity("client", of: nginx))
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        withExtendedLifetime(server) {}
    }

    @Test(nginx, arguments: ["-tls1_2", "-tls1_3"])
    func `Trust is requested if the server demands a certificate as well`(_ version: String) async throws {
        let nginx = try await Nginx()
        let (port, server) = try await demandingServer(nginx, version)
        let (scene, _) = try await attended()
        try await keep(scene, identity("client", of: nginx), for: space(port, "https", "ClientCertificate"))
        let number = try await download(scene, "https://127.0.0.1:\(port)/")
        let trust = try await question(scene)
        #expect(trust["protectionSpace"]["authenticationMethod"] == "ServerTrust", "\(trust)")
        #expect(trust["protectionSpace"]["serverPublicKey"].string == (try await nginx.pin()), "\(trust)")
        try await answer(scene, trust, with: ["trustPublicKey": trust["protectionSpace"]["serverPublicKey"]])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        withExtendedLifetime(server) {}
    }

    @Test(nginx) func `An optional client certificate is not requested`() async throws {
        let nginx = try await Nginx(
            """
            ssl_client_certificate FOLDER/client.pem; ssl_verify_client optional;
            location /a { return 200 "$ssl_client_verify"; }
            """)
        let (scene, _) = try await attended()
        try await keep(
            scene, ["trustPublicKey": .string(try await nginx.pin())],
            for: space(nginx.port(.secure), "https", "ServerTrust"))
        let number = try await download(scene, nginx.url("/a", .secure))
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).text == "NONE")
        #expect(try await scene.api.get("/v1/questions?session=s").json["items"].array == [])
    }

    @Test(nginx) func `Stored secrets for key, certificate and password are used without a question`() async throws {
        let nginx = try await Nginx(
            """
            ssl_client_certificate FOLDER/client.pem; ssl_verify_client on;
            location /a { auth_basic "the realm"; auth_basic_user_file FOLDER/users; }
            """)
        nginx.folder.write(Array("content".utf8), to: "www/a")
        let (scene, receiver) = try await attended()
        let port = nginx.port(.http2)
        try await keep(
            scene, ["trustPublicKey": .string(try await nginx.pin())], for: space(port, "https", "ServerTrust"))
        try await keep(scene, identity("client", of: nginx), for: space(port, "https", "ClientCertificate"))
        try await keep(scene, Self.password, for: space(port, "https", "HTTPBasic", realm: "the realm"))
        let list = try await scene.api.get("/v1/credentials")
        #expect(list.json["items"].array?.count == 3)
        #expect(!list.text.contains("PRIVATE KEY") && !list.text.contains("password"), "\(list.text)")
        for _ in 0..<2 {
            let task = try await scene.completed(try await download(scene, nginx.url("/a", .http2)))
            #expect(task["outcome"] == "succeeded", "\(task)")
        }
        #expect(try await scene.api.get("/v1/questions?session=s").json["items"].array == [])
        #expect(receiver.deliveries.allSatisfy { $0.json["data"]["reasons"] == ["tasksFinished"] })
        #expect(!scene.service.errors.contains("PRIVATE KEY"))
    }

    @Test(nginx, arguments: ["rejectProtectionSpace", "performDefaultHandling"])
    func `A server that is not trusted causes one question`(_ disposition: String) async throws {
        let nginx = try await Nginx()
        let (scene, _) = try await attended()
        let number = try await download(scene, nginx.url("/a", .http2))
        let trust = try await question(scene)
        let path = "/v1/questions/\(trust["questionId"].string ?? "")/answer"
        expect(try await scene.api.post(path, ["disposition": .string(disposition)]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -1202, "\(task)")
        #expect(try await scene.api.get("/v1/questions?session=s").json["items"].array?.count == 1)
    }

    // MARK: HTTP proxies

    @Test(both, arguments: [Nginx.Manner.plain, .http2])
    func `Squid leads to servers without and with TLS`(_ manner: Nginx.Manner) async throws {
        let nginx = try await Nginx()
        let squid = try await Squid()
        nginx.folder.write(Content.bytes(seed: 1, length: 300_000), to: "www/a")
        let scene = try await Scene(configuration: Self.proxy(squid.port))
        if manner != .plain {
            try await keep(
                scene, ["trustPublicKey": .string(try await nginx.pin())],
                for: space(nginx.port(manner), "https", "ServerTrust"))
        }
        let number = try await download(scene, nginx.url("/a", manner))
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
        let metrics = try await scene.event("metrics") { $0["type"] == "task.didFinishCollectingMetrics" }
        let last = metrics["data"]["transactionMetrics"].array?.last ?? .null
        #expect(last["isProxyConnection"] == true && last["remotePort"].int == Int(squid.port), "\(last)")
        // Squid logs a tunnel after its end.
        guard manner == .plain else { return }
        try await eventually("squid logs") { squid.requests.contains { $0.hasPrefix("200 GET ") } }
    }

    /// The scheme of the proxy's challenge, and the connection to the server behind it.
    private static let asked: [(Squid.Authentication, Nginx.Manner)] = [
        (.basic, .plain), (.basic, .http2), (.digest, .plain), (.digest, .secure),
    ]

    @Test(both, arguments: asked)
    func `The proxy's 407 is a question, and its answer serves the session`(
        _ scheme: Squid.Authentication, _ manner: Nginx.Manner
    ) async throws {
        let nginx = try await Nginx("location /b { auth_basic \"r\"; auth_basic_user_file FOLDER/users; }")
        let squid = try await Squid(scheme)
        nginx.folder.write(Array("content".utf8), to: "www/a")
        nginx.folder.write(Array("more".utf8), to: "www/b")
        let (scene, _) = try await attended(Self.proxy(squid.port))
        if manner != .plain {
            try await keep(
                scene, ["trustPublicKey": .string(try await nginx.pin())],
                for: space(nginx.port(manner), "https", "ServerTrust"))
        }
        let number = try await download(scene, nginx.url("/a", manner))
        let first = try await question(scene)
        let proxySpace = first["protectionSpace"]
        #expect(
            proxySpace["isProxy"] == true && proxySpace["host"] == "127.0.0.1" && proxySpace["realm"] == "the proxy"
                && proxySpace["port"].int == Int(squid.port) && proxySpace["protocol"] == "http"
                && proxySpace["authenticationMethod"].string == (scheme == .basic ? "HTTPBasic" : "HTTPDigest"),
            "\(first)")
        #expect(first["failureResponse"]["statusCode"] == 407 && first["previousFailureCount"] == 0, "\(first)")
        try await answer(scene, first, with: Self.wrong)
        let second = try await question(scene, besides: [first])
        #expect(second["previousFailureCount"] == 1, "\(second)")
        var kept = Self.password
        kept["persistence"] = "forSession"
        try await answer(scene, second, with: kept)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(try await scene.content(number).text == "content")

        // The session's next task sends it without a question, and the server's own challenge is independent.
        let next = try await download(scene, nginx.url("/b", manner))
        let login = try await question(scene, besides: [first, second])
        #expect(login["protectionSpace"]["isProxy"] == false && login["previousFailureCount"] == 0, "\(login)")
        #expect(login["protectionSpace"]["port"].int == Int(nginx.port(manner)), "\(login)")
        try await answer(scene, login, with: Self.password)
        #expect(try await scene.completed(next)["outcome"] == "succeeded")
        #expect(try await scene.content(next).text == "more")
    }

    @Test(both) func `The proxy's password of the configuration or the store is used without a question`() async throws
    {
        let nginx = try await Nginx()
        let squid = try await Squid(.basic)
        nginx.folder.write(Array("content".utf8), to: "www/a")
        let (scene, _) = try await attended(Self.proxy(squid.port, "http", ["credential": Self.password]))
        let configured = try await scene.completed(try await download(scene, nginx.url("/a")))
        #expect(configured["outcome"] == "succeeded", "\(configured)")

        var proxySpace = space(squid.port, "http", "HTTPBasic", realm: "the proxy")
        proxySpace["isProxy"] = true
        try await keep(scene, Self.password, for: proxySpace)
        // One session has no password, the other a wrong one: the stored one serves both.
        try await scene.makeSession("t", Self.proxy(squid.port))
        try await scene.makeSession("u", Self.proxy(squid.port, "http", ["credential": Self.wrong]))
        for session in ["t", "u"] {
            let number = try await download(scene, nginx.url("/a"), in: session)
            let task = try await scene.completed(number, in: session)
            #expect(task["outcome"] == "succeeded", "\(task)")
            #expect(try await scene.api.get("/v1/questions?session=\(session)").json["items"].array == [])
        }
        #expect(!(try await scene.session("u")).description.contains("wrong"))
    }

    @Test(both, arguments: [Nginx.Manner.plain, .secure])
    func `If no client answers questions, the proxy's 407 is the response`(_ manner: Nginx.Manner) async throws {
        let nginx = try await Nginx()
        let squid = try await Squid(.basic)
        let scene = try await Scene(configuration: Self.proxy(squid.port))
        let task = try await scene.completed(try await download(scene, nginx.url("/a", manner)))
        #expect(task["outcome"] == "httpError" && task["response"]["statusCode"] == 407, "\(task)")
    }

    @Test func `A server that sends 407 receives none of the proxy's credentials`() async throws {
        let (scene, _) = try await attended()
        let challenge = [("Proxy-Authenticate", "Basic realm=\"the proxy\"")]
        scene.origin.serve("/a", .text("x"), always: [.status(407, challenge, body: "no")])
        let socks = try SocksServer()
        try await scene.makeSession("t", Self.proxy(socks.port, "socks5"))
        for session in ["s", "t"] {
            let task = try await scene.completed(try await scene.download("/a", in: session), in: session)
            #expect(task["outcome"] == "httpError" && task["response"]["statusCode"] == 407, "\(task)")
            #expect(try await scene.api.get("/v1/questions?session=\(session)").json["items"].array == [])
        }
        #expect(scene.origin.requests.allSatisfy { !$0.fields.contains("Proxy-Authorization") })
    }

    // MARK: SOCKS

    @Test func `SOCKS 5 leads to the server, and the type selects where the name is resolved`() async throws {
        let scene = try await Scene(configuration: nil)
        let socks = try SocksServer()
        scene.origin.serve("/a", .generated(seed: 1, length: 200_000))
        let port = scene.origin.port
        for (type, target) in [("socks5", "127.0.0.1:\(port)"), ("socks5h", "localhost:\(port)")] {
            try await scene.makeSession(type, Self.proxy(socks.port, type))
            let number = try await download(scene, "http://localhost:\(port)/a", in: type)
            let task = try await scene.completed(number, in: type)
            #expect(task["outcome"] == "succeeded", "\(task)")
            #expect(try await scene.content(number, in: type).body == Content.bytes(seed: 1, length: 200_000))
            #expect(socks.targets.last == target || type == "socks5" && socks.targets.last?.hasPrefix("[") == true)
        }
        #expect(socks.targets.count == 2)
    }

    @Test func `SOCKS 5 gets user and password, and wrong ones are retried`() async throws {
        let scene = try await Scene(configuration: nil)
        let socks = try SocksServer(user: "u:p")
        scene.origin.serve("/a", .text("content"))
        try await scene.makeSession("right", Self.proxy(socks.port, "socks5h", ["credential": Self.password]))
        let task = try await scene.completed(try await scene.download("/a", in: "right"), in: "right")
        #expect(task["outcome"] == "succeeded", "\(task)")
        var configuration = Self.proxy(socks.port, "socks5h", ["credential": Self.wrong])
        configuration["retryPolicy"] = ["maximumAttempts": 2, "initialDelay": 0.1, "maximumDelay": 0.1]
        try await scene.makeSession("wrong", configuration)
        let refused = try await scene.completed(try await scene.download("/a", in: "wrong"), in: "wrong")
        #expect(refused["outcome"] == "failed" && refused["error"]["code"] == -1004, "\(refused)")
        #expect(refused["attempts"]["count"] == 2 && scene.origin.requests.count == 1, "\(refused)")
    }
}
