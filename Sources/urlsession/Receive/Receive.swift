import Glibc
import URLSessionClient
import Wire

/// `receive`: an app that only prints, saves and completes.
struct Receive {
    private let call: Invocation

    /// The default address: a port that no common server uses.
    static let standardAddress = "127.0.0.1:8757"
    /// The secret of `urlsessiond serve --dev`.
    private static let developmentSecret = "whsec_" + Base64.encode([UInt8](repeating: 0, count: 32))

    static func run(_ call: Invocation) async throws {
        let words = call.words
        let webhook = try verifier(call)
        let (host, port, arrivals) = try listen(words.text("listen") ?? standardAddress, webhook)
        let url = words.text("webhook-url") ?? "http://\(host == "0.0.0.0" ? "127.0.0.1" : host):\(port)/"
        if let folder = words.text("save"), !LocalFiles.isFolder(folder) { try LocalFiles.makeFolder(folder) }
        let receiver = Receive(call: call)
        let before = words.flag("no-register") ? nil : try await receiver.register(url)
        do {
            try call.output.say("receiving webhooks at \(url)")
        } catch {
            await receiver.putBack(before)
            throw error
        }
        for await arrival in arrivals {
            switch arrival {
            case .failure(let error): call.output.note("refused a webhook: \(Self.words(error))")
            case .success(let payload):
                let isLaunch = await receiver.handle(payload)
                if isLaunch, words.flag("once") { return await receiver.putBack(before) }
            }
        }
        await receiver.putBack(before)
        try Task.checkCancellation()
    }

    /// - Parameter address: `127.0.0.1:8757`; port 0 selects a free one.
    private static func listen(
        _ address: String, _ webhook: URLSessionClient.Webhook
    ) throws -> (host: String, port: UInt16, AsyncStream<Result<WebhookPayload, WebhookError>>) {
        let parts = address.split(separator: ":").map(String.init)
        do throws(ClientError) {
            guard parts.count == 2, let port = UInt16(parts[1]) else { throw .file(address, code: EINVAL) }
            let (bound, arrivals) = try webhook.arrivals(host: parts[0], port: port)
            return (parts[0], bound, arrivals)
        } catch {
            guard case .file(let place, let code) = error, code != EINVAL else {
                throw CallWords.Fault(
                    text: "--listen must be ADDR:PORT, such as \(standardAddress): \(address)", command: "receive")
            }
            throw Failure("cannot listen on \(place): \(String(cString: strerror(code)))")
        }
    }

    private static func words(_ error: WebhookError) -> String {
        switch error {
        case .unusableSecret: "the secret is invalid"
        case .incompleteHeaders: "it has no signature"
        case .wrongTime: "it was signed too long ago, or in the future"
        case .wrongSignature: "it is not signed with this secret"
        case .unreadable: "it is not JSON of a webhook"
        }
    }

    private static func verifier(_ call: Invocation) throws -> URLSessionClient.Webhook {
        var secret = call.settings.webhookSecret ?? developmentSecret
        if let path = call.words.text("secret-file") {
            let lines = String(decoding: try LocalFiles.read(path), as: UTF8.self).lines.map(\.trimmed)
            secret = lines.first { !$0.isEmpty } ?? ""
        }
        // The service's secrets have this form only: with another one, each webhook would be refused.
        guard secret.hasPrefix("whsec_"), Base64.decode(String(secret.dropFirst("whsec_".count)))?.count == 32 else {
            throw Failure("the webhook's secret is invalid: it is whsec_ and 32 bytes in base64", status: 2)
        }
        return try URLSessionClient.Webhook(secrets: [secret])
    }

    // MARK: The app's webhook

    /// Sets the app's webhook to this program.
    ///
    /// - Returns: The change that restores the previous webhook.
    private func register(_ url: String) async throws -> WebhookChange {
        let before = try await call.client.app().webhook
        if let other = before.url, other != url, !call.words.flag("replace") {
            throw Failure(
                "the app's webhook is \(other)", "--replace replaces it while the command runs, --no-register keeps it")
        }
        _ = try await call.client.changeWebhook(
            WebhookChange {
                $0.url = .set(url)
                $0.state = .enabled
            })
        return WebhookChange {
            $0.url = before.url.map { .set($0) } ?? .clear
            $0.state = before.state == .disabled ? nil : before.state
        }
    }

    private func putBack(_ change: WebhookChange?) async {
        guard let change else { return }
        // In a Swift task of its own, because this one may be cancelled.
        _ = await Task.detached { [client = call.client] in try? await client.changeWebhook(change) }.value
    }

    // MARK: Webhooks

    /// - Returns: Whether it was a launch.
    private func handle(_ payload: WebhookPayload) async -> Bool {
        do {
            if call.output.isJSON { try call.output.json(payload) }
            switch payload.type {
            case "session.handleEvents":
                try await handle(payload.data.read(WebhookPayload.HandleEvents.self))
                return true
            case "app.performFetch":
                try await perform(payload.data.read())
                return true
            case "app.backgroundRefreshStatusDidChange":
                let change: WebhookPayload.RefreshStatusDidChange = try payload.data.read()
                try call.output.say("background refresh is \(change.backgroundRefreshStatus) now")
            case "webhook.ping": try call.output.say("ping")
            default: try call.output.say("\(payload.type), which this receiver does not support")
            }
        } catch {
            // The launch is not completed, so it is repeated.
            Failure(of: error, at: call.settings.url).lines.forEach { Output.complain($0) }
        }
        return false
    }

    /// Handles all unacknowledged events, in order. The lease fences an earlier handler of the same launch.
    private func handle(_ launch: WebhookPayload.HandleEvents) async throws {
        let (client, session) = (call.client, launch.sessionIdentifier)
        let events = launch.pendingEvents.counted("event")
        try call.output.say(
            "launch \(launch.launchId) of \(session): \(launch.reasons.joined(separator: ", ")), \(events)")
        guard !call.words.flag("no-complete") else {
            for event in try await client.eventPage(of: session, limit: 1000).items { try show(event) }
            return
        }
        let lease = try await client.attach(to: session, ttl: 300, launchId: launch.launchId, takeover: true)
        while case let events = try await client.eventPage(of: session, limit: 1000).items, let last = events.last?.seq
        {
            for event in events {
                try show(event)
                if let folder = call.words.text("save"),
                    let path = try await client.saveContent(of: event, in: LocalFiles.absolute(folder))
                {
                    try call.output.say("     saved \(LocalFiles.relative(path))")
                }
            }
            try await client.acknowledge(through: last, in: session, epoch: lease.epoch)
            _ = try await client.renewAttachment(lease.epoch, to: session, ttl: 300)
        }
        _ = try await client.completeLaunch(launch.launchId, epoch: lease.epoch)
        try call.output.say("completed \(launch.launchId)")
    }

    private func show(_ event: Event) throws {
        if call.output.isJSON { return try call.output.json(event) }
        let subject = event.taskIdentifier.map { "task \($0) " } ?? ""
        try call.output.say("  \(event.seq ?? 0)  \(Words.time(event.occurredAt))  \(subject)\(Words.event(event))")
    }

    private func perform(_ fetch: WebhookPayload.PerformFetch) async throws {
        try call.output.say("fetch \(fetch.launchId), due by \(Words.time(fetch.deadline))")
        guard !call.words.flag("no-complete") else { return }
        let result = LaunchCompletion.FetchResult(rawValue: call.words.text("result") ?? "noData")
        _ = try await call.client.completeFetch(fetch.launchId, result: result)
        try call.output.say("completed \(fetch.launchId) with \(result)")
    }
}
