import Foundation
import Synchronization
import TestSupport
import Testing
import URLSessionClient

/// Webhooks become launches.
struct LaunchReceiverTests {
    typealias House = ClientTests.House

    /// The secret of `--dev`.
    static let secret = "whsec_" + Data(count: 32).base64EncodedString()

    /// An app that records its launches, and completes them when its session has delivered all events.
    @MainActor
    final class App: LaunchDelegate {
        nonisolated let launches = Mutex<[String]>([])
        nonisolated let result: BackgroundFetchResult?
        private let makesSession: (@MainActor (String) -> Void)?

        nonisolated init(
            result: BackgroundFetchResult? = nil, makesSession: (@MainActor @Sendable (String) -> Void)? = nil
        ) {
            self.result = result
            self.makesSession = makesSession
        }

        nonisolated var words: [String] { launches.withLock { $0 } }

        func application(
            _ application: LaunchReceiver, handleEventsForBackgroundURLSession identifier: String,
            completionHandler: @escaping @Sendable () -> Void
        ) {
            launches.withLock { $0.append(identifier) }
            guard let makesSession else { return completionHandler() }
            handler.withLock { $0 = completionHandler }
            makesSession(identifier)
        }

        func application(
            _ application: LaunchReceiver,
            performFetchWithCompletionHandler completionHandler: @escaping @Sendable (BackgroundFetchResult) -> Void
        ) {
            launches.withLock { $0.append("fetch") }
            if let result { completionHandler(result) }
        }

        nonisolated let handler = Mutex<(@Sendable () -> Void)?>(nil)
    }

    /// A server that passes requests to a receiver.
    static func listen(_ house: House, _ app: App) async throws -> LaunchReceiver {
        let receiver = try LaunchReceiver(client: house.client, secrets: [secret], delegate: app)
        let port = try BackgroundAppTests.freePort()
        try receiver.listen(on: port)
        _ = try await house.client.changeWebhook(
            WebhookChange {
                $0.url = .set("http://127.0.0.1:\(port)/")
                $0.launchDeadline = 5
            })
        return receiver
    }

    @Test func `The receiver answers signed requests only`() async throws {
        let house = try await House()
        let receiver = try await Self.listen(house, App())
        #expect(try await house.client.pingWebhook().statusCode == 204)
        let forged = await receiver.respond(to: ["webhook-id": "msg_1"], body: Array("{}".utf8))
        #expect(forged.status == 401)
        let stranger = try LaunchReceiver(
            client: house.client, secrets: ["whsec_" + Data("another".utf8).base64EncodedString()], delegate: App())
        let port = try BackgroundAppTests.freePort()
        try stranger.listen(on: port)
        _ = try await house.client.changeWebhook(WebhookChange { $0.url = .set("http://127.0.0.1:\(port)/") })
        #expect(try await house.client.pingWebhook().statusCode == 401)
        #expect(throws: ClientError.self) { try stranger.listen(on: port) }
    }

    @Test func `A fetch ends with the delegate's result`() async throws {
        let house = try await House()
        let app = App(result: .noData)
        let receiver = try await Self.listen(house, app)
        _ = try await house.client.simulateFetch()
        try await eventually("its end") {
            try await house.client.backgroundRefresh().history.first?.result == .noData
        }
        #expect(app.words == ["fetch"])
        withExtendedLifetime(receiver) {}
    }

    @Test func `A launch is completed after the session's last message, also with an existing session`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let recorder = Recorder()
        let sessions = Mutex<[BackgroundSession]>([])
        let app = App(makesSession: { identifier in
            sessions.withLock { sessions in
                guard sessions.isEmpty else { return }
                sessions.append(
                    BackgroundSession(identifier: identifier, client: house.client, delegate: recorder))
            }
        })
        let receiver = try await Self.listen(house, app)
        // No client is attached to the session `s`.
        _ = try await house.download("/a")
        try await eventually("it is told", within: .seconds(60)) { recorder.messages.last == "finished events" }
        #expect(recorder.messages == ["downloaded ", "metrics", "completed ", "finished events"])
        #expect(app.words == ["s"])
        try await eventually("the service has the answer") {
            try await house.client.launches().items.first?.state == .launched
        }
        app.handler.withLock { $0 }?()
        try await eventually("it is completed") {
            try await house.client.launches().items.first?.state == .completed
        }
        // A launch for an object that has delivered all its messages.
        let launch = WebhookPayload.HandleEvents {
            ($0.launchId, $0.sessionIdentifier, $0.lastSeq) = ("lnch_2", "s", 3)
        }
        let payload = WebhookPayload { ($0.type, $0.data) = ("session.handleEvents", JSONText(launch)) }
        let (body, time) = (payload.jsonBytes, String(Int(Date().timeIntervalSince1970)))
        let headers = [
            "Webhook-Id": "lnch_2", "Webhook-Timestamp": time,
            "Webhook-Signature": try #require(
                WebhookSignature.sign(secret: Self.secret, id: "lnch_2", timestamp: time, body: body)),
        ]
        #expect(await receiver.respond(to: headers, body: body).status == 204)
        try await eventually("it is told again") {
            recorder.messages.filter { $0 == "finished events" }.count == 2
        }
        #expect(app.words == ["s", "s"])
        withExtendedLifetime(receiver) {}
    }

    @Test func `Events without a session object stay for the next launch`() async throws {
        let house = try await House()
        house.origin.serve("/a", .text("a"))
        let app = App()
        let receiver = try await Self.listen(house, app)
        _ = try await house.download("/a")
        try await eventually("a launch is completed", within: .seconds(60)) {
            try await house.client.launches().items.first?.state == .completed
        }
        #expect(try await house.client.session("s").acknowledgedSeq == 0)
        #expect(app.words.first == "s")
        withExtendedLifetime(receiver) {}
    }
}
