import TestSupport
import Testing

/// Errors are described in the field's words, with address and port, and without the secrets of a URL.
@Suite struct ErrorWordsTests {
    private let secret = "?signature=c2VjcmV0"

    @Test func `A refused connection is named with address and port`() async throws {
        let scene = try await Scene()
        let port = try ExampleTests.freePort()
        let request: JSON = ["url": .string("http://127.0.0.1:\(port)/a\(secret)")]
        let number = try await scene.download("/", ["request": request])
        let error = try await lastError(of: number, scene)
        #expect(error["localizedDescription"].string == "Could not connect to 127.0.0.1:\(port): connection refused.")
        #expect(error["code"] == -1004, "\(error)")
    }

    @Test func `The error of a lost connection names the cause`() async throws {
        let scene = try await Scene()
        let peer = "127.0.0.1:\(scene.origin.port)"
        scene.origin.serve("/silent", .text("x"), always: [.noAnswer()])
        scene.origin.serve("/short", .generated(seed: 1, length: 1000), always: [.cut(after: 10)])
        for (path, text) in [
            ("/silent", "Connection to \(peer) closed without a response."),
            ("/short", "Connection to \(peer) closed before the end of the body."),
        ] {
            let error = try await lastError(of: try await scene.download(path + secret), scene)
            #expect(error["localizedDescription"].string == text, "\(error)")
        }
    }

    @Test func `A status is named with its phrase`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": "apple"])
        scene.origin.serve("/busy", .text("later", status: 503))
        let number = try await scene.download("/busy" + secret, ["failOnHTTPError": true])
        let error = try await scene.completed(number)["error"]
        let text = "127.0.0.1:\(scene.origin.port) responded with 503 Service Unavailable."
        #expect(error["localizedDescription"].string == text && error["code"] == -1011, "\(error)")
    }

    @Test func `The attempt of a launch names the receiver's response`() async throws {
        let scene = try await Scene(configuration: nil)
        let receiver = try Receiver(answers: [.status(503), .status(302, [("Location", "/other")]), .status(410)])
        let errors = [
            "503 Service Unavailable", "302 Found: redirects are not followed.", "410 Gone",
        ]
        for error in errors {
            #expect(try await ping(receiver.url + secret, scene)["error"].string == error)
        }
        let port = try ExampleTests.freePort()
        let refused = try await ping("http://127.0.0.1:\(port)/hook\(secret)", scene)
        #expect(refused["error"].string == "Could not connect to 127.0.0.1:\(port): connection refused.", "\(refused)")
    }

    /// The response to a ping: the attempt.
    private func ping(_ url: String, _ scene: Scene) async throws -> JSON {
        let changed = try await scene.api.patch("/v1/app", ["webhook": ["url": .string(url), "state": "enabled"]])
        try #require(changed.status == 200, "\(changed.text)")
        return try await scene.api.post("/v1/app/webhook/ping").json
    }

    /// The error of the last attempt of a retried task.
    private func lastError(of number: Int, _ scene: Scene) async throws -> JSON {
        let error = try await eventually("an attempt of task \(number) fails") { () -> JSON? in
            let task = try await scene.api.get("/v1/sessions/s/tasks/\(number)").json
            let error = task["attempts"]["last"]["error"]
            return error.isNull ? .none : error
        }
        #expect(error["localizedDescription"].string?.contains("c2VjcmV0") == false, "\(error)")
        #expect(error["underlying"]["message"].string?.contains("c2VjcmV0") != true, "\(error)")
        return error
    }
}
