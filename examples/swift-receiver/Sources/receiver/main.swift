// A receiver of urlsessiond's launches in Swift: `swift run --package-path examples/swift-receiver`.
//
// It verifies each launch, answers 2xx at once, drains the session's events in order, saves the contents of downloads in
// INBOX (docs/webhooks.md, "Names of saved files"), acknowledges and completes the launch. Each step may be repeated
// after a crash. Environment: URLSESSIOND, API_KEY, WEBHOOK_SECRET (those of `urlsessiond serve --dev`), PORT, INBOX.
import FoundationEssentials
import Glibc
import URLSessionClient
import Wire

func setting(_ name: String, _ standard: String) -> String { getenv(name).map { String(cString: $0) } ?? standard }

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

let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
var (yes, address, patience) = (Int32(1), sockaddr_in(), timeval(tv_sec: 10, tv_usec: 0))
setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, 4)
address.sin_family = sa_family_t(AF_INET)
address.sin_port = UInt16(setting("PORT", "9000"))!.bigEndian
address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
let size = socklen_t(MemoryLayout<sockaddr_in>.size)
let bound = withUnsafeBytes(of: &address) { bind(listener, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, size) }
guard bound == 0, listen(listener, 16) == 0 else { exit(1) }

while true {
    let connection = accept(listener, nil, nil)
    setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    guard let stream = fdopen(connection, "r") else { continue }
    var (headers, line, room) = ([String: String](), UnsafeMutablePointer<CChar>?.none, 0)
    while getline(&line, &room, stream) > 2, let line {
        let parts = String(cString: line).prefix { !$0.isNewline }.split(separator: ":", maxSplits: 1)
        if parts.count == 2 { headers[parts[0].lowercased()] = String(parts[1].drop { $0 == " " }) }
    }
    free(line)
    var body = [UInt8](repeating: 0, count: min(Int(headers["content-length"] ?? "") ?? 0, 1 << 20))
    body.removeLast(body.count - fread(&body, 1, body.count, stream))
    let payload = try? webhook.verify(headers: headers, body: body, now: Int64(time(nil)))
    let answer = "HTTP/1.1 \(payload == nil ? 401 : 202) OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
    fclose(stream)
    if let payload { Task.detached { await perform(payload) } }
}
