import Core
import Store
import Wire
import WireMapping

/// The bodies of webhooks: compact JSON in ASCII, created once for each launch.
struct Payload: Sendable {
    let urls: PublicURLs

    /// - Parameter contents: The contents of a session's launch; `nil` if the session is gone.
    func body(of launch: ClaimedLaunch, _ contents: LaunchContents?) -> [UInt8] {
        let data =
            switch launch.kind {
            case .handleEvents: JSONText(handleEvents(launch, contents))
            case .performFetch: JSONText(performFetch(launch))
            case .refreshStatusDidChange:
                JSONText(
                    WebhookPayload.RefreshStatusDidChange {
                        $0.app = launch.appIdentifier
                        $0.backgroundRefreshStatus = Wire.BackgroundRefreshStatus(launch.refreshStatus)
                    })
            case .ping: Self.ping(launch.appIdentifier)
            }
        return Self.text(launch.kind, at: launch.createdAt, data)
    }

    func ping(_ app: String, at now: Timestamp) -> [UInt8] { Self.text(.ping, at: now, Self.ping(app)) }

    private static func ping(_ app: String) -> JSONText { JSONText(WebhookPayload.Ping { $0.app = app }) }

    private static func text(_ kind: LaunchKind, at moment: Timestamp, _ data: JSONText) -> [UInt8] {
        let payload = WebhookPayload {
            $0.type = kind.rawValue
            $0.timestamp = moment.rfc3339
            $0.data = data
        }
        return asciiOnly(payload.jsonBytes)
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

    /// JSON text with all characters outside ASCII escaped, so that no intermediary changes bytes by recoding.
    ///
    /// In JSON, only strings contain characters outside ASCII.
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
