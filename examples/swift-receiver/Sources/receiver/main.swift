// A receiver of urlsessiond's launches in Swift: `swift run --package-path examples/swift-receiver`.
//
// It verifies each launch, answers 2xx at once, drains the session's events in order, acknowledges page by page and
// completes the launch. Environment: URLSESSIOND, API_KEY, WEBHOOK_SECRET (those of `urlsessiond serve --dev`), PORT.
import FoundationEssentials
import Glibc
import URLSessionClient
import Wire

func setting(_ name: String, _ standard: String) -> String { getenv(name).map { String(cString: $0) } ?? standard }

let service = Client(url: URL(string: setting("URLSESSIOND", "http://127.0.0.1:8080"))!, key: setting("API_KEY", "dev"))
let webhook = try Webhook(secrets: [
    setting("WEBHOOK_SECRET", "whsec_" + Base64.encode([UInt8](repeating: 0, count: 32)))
])

/// All that is not acknowledged yet, a page at a time. Handling an event twice must do no harm: a crash in between
/// brings it again.
func drain(_ launch: WebhookPayload.HandleEvents) async throws {
    while let last = try await handlePage(of: launch.sessionIdentifier) {
        try await service.acknowledge(through: last, in: launch.sessionIdentifier)
    }
    _ = try await service.completeLaunch(launch.launchId)
}

/// The number of the last event of the next page, or nil when there is none.
func handlePage(of session: String) async throws -> Int64? {
    let events = try await service.eventPage(of: session).items
    for event in events {
        print(event.seq ?? 0, event.type.rawValue, event.clientTaskId ?? "")
        if event.type == .taskDidFinishDownloading, let task = event.taskIdentifier {
            print("  content of", try await service.content(ofTask: task, in: session).count, "bytes")
        }
    }
    return events.last?.seq
}

/// Reads one request from a connection: its header fields and its body.
func readRequest(_ connection: Int32) -> (headers: [String: String], body: [UInt8])? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
        if let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) {
            let fields = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n").dropFirst()
            let headers = Dictionary(
                fields.compactMap { line -> (String, String)? in
                    guard let colon = line.firstIndex(of: ":") else { return nil }
                    let value = line[line.index(after: colon)...].drop { $0 == " " }
                    return (line[..<colon].lowercased(), String(value))
                }, uniquingKeysWith: { first, _ in first })
            let length = headers["content-length"].flatMap { Int($0) } ?? 0
            if bytes.count - end.upperBound >= length {
                return (headers, Array(bytes[end.upperBound...].prefix(length)))
            }
        }
        let count = read(connection, &buffer, buffer.count)
        guard count > 0, bytes.count < 1 << 20 else { return nil }
        bytes += buffer[..<count]
    }
}

let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
var yes: Int32 = 1
setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
var address = sockaddr_in()
address.sin_family = sa_family_t(AF_INET)
address.sin_port = (UInt16(setting("PORT", "9000")) ?? 9000).bigEndian
address.sin_addr.s_addr = UInt32(INADDR_LOOPBACK).bigEndian
let isBound = withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
    }
}
guard isBound == 0, listen(listener, 16) == 0 else { exit(1) }

while true {
    let connection = accept(listener, nil, nil)
    guard let request = readRequest(connection) else {
        close(connection)
        continue
    }
    var launch: WebhookPayload.HandleEvents?
    var answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
    do {
        let payload = try webhook.verify(headers: request.headers, body: request.body, now: Int64(time(nil)))
        launch = payload.type == "session.handleEvents" ? try payload.data.read() : nil
    } catch {
        answer = "HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    }
    _ = send(connection, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
    close(connection)
    // What fails here is not completed, so the launch comes again.
    do { if let launch { try await drain(launch) } } catch { print("problem:", error) }
}
