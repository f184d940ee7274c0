// A receiver of urlsessiond's launches in Swift: `swift run --package-path examples/swift-receiver`.
//
// It verifies each launch, answers 2xx at once, drains the session's events in order, saves the contents of downloads in
// INBOX (docs/webhooks.md, "Names of saved files"), acknowledges and completes the launch. Each step may be repeated
// after a crash. Environment: URLSESSIOND, API_KEY, WEBHOOK_SECRET (those of `urlsessiond serve --dev`), PORT, INBOX.
import Foundation
import URLSessionClient

func setting(_ name: String, _ standard: String) -> String { ProcessInfo.processInfo.environment[name] ?? standard }

let service = Client(url: URL(string: setting("URLSESSIOND", "http://127.0.0.1:8080"))!, key: setting("API_KEY", "dev"))
let devSecret = "whsec_" + Base64.encode([UInt8](repeating: 0, count: 32))
let webhook = try Webhook(secrets: [setting("WEBHOOK_SECRET", devSecret)])
let inbox = URL(filePath: setting("INBOX", "inbox"))
try FileManager.default.createDirectory(at: inbox, withIntermediateDirectories: true)

/// All that is not acknowledged, in order. Fenced: an earlier handler of the same launch is refused from here on.
func drain(_ launch: WebhookPayload.HandleEvents) async throws {
    let session = launch.sessionIdentifier
    let lease = try await service.attach(to: session, ttl: 300, launchId: launch.launchId, takeover: true)
    while case let events = try await service.eventPage(of: session).items, let last = events.last?.seq {
        for event in events { try await handle(event) }
        try await service.acknowledge(through: last, in: session, epoch: lease.epoch)
    }
    _ = try await service.completeLaunch(launch.launchId, epoch: lease.epoch)
}

/// One event. Doing it twice must do no harm.
func handle(_ event: Event) async throws {
    print(event.seq ?? 0, event.type, event.clientTaskId ?? "")
    if let file = try await service.saveContent(of: event, in: inbox.path()) { print("saved", file) }
}

/// What a webhook asks for, done after its 2xx. What fails is not completed, so it comes again.
func perform(_ payload: WebhookPayload) async {
    do {
        switch payload.type {
        case "session.handleEvents": try await drain(payload.data.read())
        case "app.performFetch":
            let fetch: WebhookPayload.PerformFetch = try payload.data.read()
            _ = try await service.completeFetch(fetch.launchId, result: .noData)
        default: break
        }
    } catch { print("problem:", error) }
}

for await payload in try webhook.listen(on: UInt16(setting("PORT", "9000"))!) { Task { await perform(payload) } }
