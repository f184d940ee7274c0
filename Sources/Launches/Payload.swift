import Core
import Mapping
import Store
import Wire

/// The bodies of webhooks: compact JSON in ASCII, made once for each launch.
struct Payload: Sendable {
    let urls: PublicURLs

    /// - Parameter contents: Of a session's launch; nil where the session is gone.
    func body(of launch: ClaimedLaunch, _ contents: LaunchContents?) -> [UInt8] {
        let timestamp = launch.createdAt.rfc3339
        let payload =
            switch launch.kind {
            case .handleEvents: WebhookPayload(timestamp: timestamp, handleEvents(launch, contents))
            case .performFetch: WebhookPayload(timestamp: timestamp, performFetch(launch))
            case .refreshStatusDidChange:
                WebhookPayload(
                    timestamp: timestamp,
                    WebhookPayload.RefreshStatusDidChange {
                        $0.app = launch.appIdentifier
                        $0.backgroundRefreshStatus = Wire.BackgroundRefreshStatus(launch.refreshStatus)
                    })
            case .ping: WebhookPayload(timestamp: timestamp, WebhookPayload.Ping { $0.app = launch.appIdentifier })
            }
        return Self.asciiOnly(payload.jsonBytes)
    }

    func ping(_ app: String, at now: Timestamp) -> [UInt8] {
        Self.asciiOnly(WebhookPayload(timestamp: now.rfc3339, WebhookPayload.Ping { $0.app = app }).jsonBytes)
    }

    private func handleEvents(_ launch: ClaimedLaunch, _ contents: LaunchContents?) -> WebhookPayload.HandleEvents {
        let session = launch.sessionIdentifier ?? ""
        let envelope = EventEnvelope(sessionIdentifier: session, urls: urls)
        return WebhookPayload.HandleEvents {
            $0.launchId = launch.launchId
            $0.app = launch.appIdentifier
            $0.sessionIdentifier = session
            $0.reasons = launch.reasons.names
            $0.lastSeq = launch.lastSeq
            $0.pendingEvents = contents?.pendingEvents ?? 0
            $0.taskCounts = contents.map { OutcomeCounts($0.taskCounts) } ?? OutcomeCounts()
            $0.eventsURL = urls.events(of: session)
            $0.completionURL = urls.completion(of: launch.launchId)
            $0.expiresAt = launch.expiresAt.rfc3339
            $0.events = contents?.events.map { envelope.event($0) } ?? []
        }
    }

    private func performFetch(_ launch: ClaimedLaunch) -> WebhookPayload.PerformFetch {
        WebhookPayload.PerformFetch {
            $0.launchId = launch.launchId
            $0.app = launch.appIdentifier
            $0.deadline = launch.expiresAt.rfc3339
            $0.previousResult = launch.previousResult.map { LaunchCompletion.FetchResult($0) }
            $0.completionURL = urls.completion(of: launch.launchId)
        }
    }

    /// JSON text with what is not ASCII escaped, so that no framework between can change a byte by recoding.
    ///
    /// Outside ASCII there is nothing in JSON but the insides of strings.
    static func asciiOnly(_ json: [UInt8]) -> [UInt8] {
        guard json.contains(where: { $0 >= 0x80 }) else { return json }
        let digits = Array("0123456789abcdef".utf8)
        var result: [UInt8] = []
        result.reserveCapacity(json.count * 2)
        for unit in String(decoding: json, as: UTF8.self).utf16 {
            if unit < 0x80 {
                result.append(UInt8(unit))
            } else {
                result += [0x5C, 0x75]
                for shift in [12, 8, 4, 0] { result.append(digits[Int(unit >> UInt16(shift)) & 15]) }
            }
        }
        return result
    }
}
