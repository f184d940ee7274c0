import Core
import TestSupport
import Testing

/// docs/transfers.md "Redirects".
@Suite struct RedirectTests {
    @Test func `Sixteen redirects are followed, the seventeenth fails with -1007`() async throws {
        let scene = try await Scene()
        for hop in 0..<17 { scene.origin.serve("/\(hop)", .text("x"), always: [.redirect("/\(hop + 1)")]) }
        scene.origin.serve("/17", .generated(seed: 1, length: 10))
        let good = try await scene.completed(try await scene.download("/1"))
        #expect(good["outcome"] == "succeeded" && good["redirects"].array?.count == 16, "\(good)")
        #expect(good["currentRequest"]["url"].string == scene.origin.url("/17"))
        #expect(good["originalRequest"]["url"].string == scene.origin.url("/1"))
        #expect(good["response"]["url"].string == scene.origin.url("/17"))
        let bad = try await scene.completed(try await scene.download("/0"))
        #expect(bad["outcome"] == "failed" && bad["error"]["code"] == -1007, "\(bad)")
        #expect(bad["error"]["name"] == "httpTooManyRedirects")
        #expect(scene.origin.requests("/17").count == 1)
    }

    @Test(
        arguments: [
            (nil, -1010), ("ftp://a.example/", -1002), ("file:///etc/passwd", -1002), ("http://", -1010),
            ("http://a b/", -1010),
        ] as [(String?, Int)])
    func `A redirect without a usable location fails`(_ location: String?, _ code: Int) async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"), always: [.status(302, location.map { [("Location", $0)] } ?? [])])
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "failed" && task["error"]["code"].int == code, "\(task)")
        #expect(scene.origin.requests.count == 1)
    }

    @Test func `Secrets do not cross origins`() async throws {
        let scene = try await Scene()
        let other = try OriginServer()
        other.serve("/there", .text("x"))
        scene.origin.serve("/across", .text("x"), always: [.redirect(other.url("/there"))])
        scene.origin.serve("/within", .text("x"), always: [.redirect("/here")])
        scene.origin.serve("/here", .text("x"))
        let secrets = ["Authorization", "Cookie", "X-Api-Key", "X-Auth-Token", "X-Mine", "Proxy-X"]
        var headers = Dictionary(uniqueKeysWithValues: secrets.map { ($0, JSON.string("secret")) })
        headers["X-Open"] = "open"
        if case let probe = try await scene.api.post(
            "/v1/sessions/s/tasks",
            scene.downloadOf(
                "/", ["state": "suspended", "request": ["url": "http://a.example/", "headers": ["Proxy-X": "a"]]])),
            probe.status == 422
        {
            headers["Proxy-X"] = nil
        }
        for path in ["/across", "/within"] {
            let request: JSON = [
                "url": .string(scene.origin.url(path)), "headers": .object(headers), "sensitiveHeaders": ["X-Mine"],
            ]
            try await scene.completed(try await scene.download(path, ["request": request]))
        }
        let across = try #require(other.requests("/there").first)
        for name in secrets { #expect(!across.fields.contains(name), "\(name)") }
        #expect(across.fields["X-Open"] == "open")
        #expect(across.fields["Host"] == "127.0.0.1:\(other.port)")
        let within = try #require(scene.origin.requests("/here").first)
        for name in headers.keys { #expect(within.fields.contains(name), "\(name)") }
    }

    @Test(arguments: [
        (301, "POST", "GET", false), (302, "POST", "GET", false), (303, "POST", "GET", false),
        (303, "PUT", "GET", false), (307, "POST", "POST", true), (308, "POST", "POST", true), (301, "PUT", "PUT", true),
        (307, "PUT", "PUT", true),
    ])
    func `Methods change as HTTP requires`(_ status: Int, _ method: String, _ then: String, _ body: Bool) async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"), always: [.redirect("/b", status: status)])
        scene.origin.serve("/b", .upload(status: 200))
        let request: JSON = ["url": .string(scene.origin.url("/a")), "method": .string(method)]
        let number = try await scene.upload("/a", body: ["text": "hello"], ["request": request])
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        let second = try #require(scene.origin.requests("/b").first)
        #expect(second.method == then)
        #expect(second.body == (body ? Array("hello".utf8) : []))
        #expect(body || !second.fields.contains("Content-Type"))
    }

    @Test func `A resumed download follows the same redirects`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]])
        scene.origin.serve("/a", .text("x"), always: [.redirect("/b")])
        scene.origin.serve("/b", .generated(seed: 1, length: 300_000), turns: [[.cut(after: 200_000)]])
        let number = try await scene.download("/a")
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/b").last?.fields["Range"] == "bytes=200000-")
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
    }
}
