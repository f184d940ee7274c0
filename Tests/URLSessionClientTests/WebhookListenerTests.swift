import Foundation
import TestSupport
import Testing
import URLSessionClient

struct WebhookListenerTests {
    private func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test func `A port in use leaks no descriptor`() async throws {
        let house = try await ClientTests.House()
        let receiver = try LaunchReceiver(
            client: house.client, secrets: [LaunchReceiverTests.secret], delegate: LaunchReceiverTests.App())
        let occupied = try Receiver()
        defer { occupied.stop() }
        let before = try openDescriptors()
        for _ in 0..<400 { #expect(throws: ClientError.self) { try receiver.listen(on: occupied.port) } }
        // Concurrent tests open and close descriptors as well.
        #expect(try openDescriptors() - before < 200)
    }

    @Test func `Signed webhooks arrive, and all others are refused`() async throws {
        let port = try BackgroundAppTests.freePort()
        let arrivals = try Webhook(secrets: [LaunchReceiverTests.secret]).listen(on: port)
        let api = APIClient(port: port)
        func send(_ body: TestSupport.JSON, signedWith secret: String) async throws -> Int {
            let time = String(Int(Date().timeIntervalSince1970))
            let signature = WebhookSignature.sign(secret: secret, id: "msg_1", timestamp: time, body: body.bytes)
            let fields = [
                ("webhook-id", "msg_1"), ("webhook-timestamp", time), ("webhook-signature", try #require(signature)),
            ]
            return try await api.post("/", body, headers: fields).status
        }
        let ping: TestSupport.JSON = ["type": "webhook.ping", "timestamp": "2026-12-01T00:00:00Z", "data": [:]]
        #expect(try await send(ping, signedWith: "whsec_" + Data("another".utf8).base64EncodedString()) == 401)
        #expect(try await send(["type": 1], signedWith: LaunchReceiverTests.secret) == 400)
        #expect(try await api.get("/").status == 400)
        #expect(try await send(ping, signedWith: LaunchReceiverTests.secret) == 202)
        for await payload in arrivals {
            #expect(payload.type == "webhook.ping")
            break
        }
    }

    @Test func `A webhook without a reader is refused, so that it is repeated`() async throws {
        let webhook = try Webhook(secrets: [LaunchReceiverTests.secret])
        let port = try webhook.arrivals(host: "127.0.0.1", port: 0).port
        #expect(try await APIClient(port: port).post("/", [:]).status == 503)
        #expect(throws: ClientError.file("nowhere:0", code: EINVAL)) { try webhook.arrivals(host: "nowhere", port: 0) }
    }
}
