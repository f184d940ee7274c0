import Glibc
import Options
import URLSessionClient
import Wire

enum AppCommands {
    // MARK: Webhook

    static func webhook(_ call: Invocation) async throws { try show(try await call.client.app(), call) }

    private static func show(_ app: App, _ call: Invocation) throws {
        try call.output.show(app) { app in
            let webhook = app.webhook
            let reason = webhook.disabledReason.map { " (\($0))" } ?? ""
            return ["\(webhook.url ?? "-")\t\(webhook.state)\(reason)"]
        }
    }

    static func setWebhook(_ call: Invocation) async throws {
        let words = call.words
        let change = WebhookChange {
            switch words.text("URL") {
            case nil: break
            case "-"?: $0.url = .clear
            case let url?: $0.url = .set(url)
            }
            $0.state = words.text("state").map { WebhookState(rawValue: $0) }
            // A call with a URL enables the webhook.
            if words.text("URL") != nil, words.text("URL") != "-", $0.state == nil { $0.state = .enabled }
            $0.includeEvents = words.number("include-events")
            $0.launchDeadline = words.seconds("deadline")
        }
        guard change != WebhookChange() else {
            throw CallWords.Fault(text: "name at least one change", command: "webhook set")
        }
        try show(try await call.client.changeWebhook(change), call)
    }

    static func ping(_ call: Invocation) async throws {
        let attempt = try await call.client.pingWebhook()
        try call.output.show(attempt) { [words($0)] }
        guard let status = attempt.statusCode, (200..<300).contains(status) else { throw Failure.silent(1) }
    }

    /// `200 OK`, or the failure of the attempt: `204 No Content, not completed within 60 s`.
    ///
    /// - Parameter deadline: The webhook's `launchDeadline` in seconds; `nil` if it is unknown or irrelevant.
    static func result(_ attempt: LaunchAttempt, deadline: Double? = nil) -> String {
        let status = attempt.statusCode.map { Words.status($0) }
        if attempt.error == LaunchAttempt.notCompleted {
            return "\(status ?? "answered"), not completed " + (deadline.map { "within \(Int($0)) s" } ?? "in time")
        }
        let error = attempt.error.map { $0.hasSuffix(".") ? String($0.dropLast()) : $0 }
        return status ?? error ?? "no answer yet"
    }

    /// `12:00:00  200 OK, 0.1 s: the beginning of the response`.
    static func words(_ attempt: LaunchAttempt, deadline: Double? = nil) -> String {
        let duration = attempt.duration.map { ", \(Words.duration($0))" } ?? ""
        let excerpt = attempt.excerpt.flatMap { $0.isEmpty ? nil : ": \($0.prefix(100))" } ?? ""
        return "\(Words.time(attempt.startedAt))  \(result(attempt, deadline: deadline))\(duration)\(excerpt)"
    }

    static func rotate(_ call: Invocation) async throws {
        let rotated = try await call.client.rotateWebhookSecret(gracePeriod: call.words.seconds("grace") ?? 86_400)
        try call.output.show(rotated) { [$0.secret] }
        if !call.output.isJSON {
            call.output.note("The old secret still signs until \(Words.time(rotated.previousSecretExpiresAt)).")
        }
    }

    // MARK: Launches

    static func redeliver(_ call: Invocation) async throws {
        let words = call.words
        switch (words.text("LAUNCH"), words.text("since")) {
        case (let launch?, nil):
            let launch = try await call.client.redeliverLaunch(launch)
            try call.output.row(launch, row)
        case (nil, let since?):
            let selection = LaunchSelection {
                $0.createdAfter = Words.moment(since)
                $0.createdBefore = words.text("until").map { Words.moment($0) }
                $0.session = words.text("session")
                $0.state = words.choices("state").map { OneOrMore($0.map { Launch.State(rawValue: $0) }) }
            }
            let answer = try await call.client.redeliverLaunches(selection)
            try call.output.show(answer) { ["sent again \($0.changed)\tmatched \($0.matched)"] }
        default:
            throw CallWords.Fault(text: "name a LAUNCH, or say --since when", command: "webhook redeliver")
        }
    }

    static func launches(_ call: Invocation) async throws {
        let words = call.words
        let deadline = await launchDeadline(call)
        try await call.output.list(
            ["launch", "kind", "state", "attempts", "session", "created", "last attempt"],
            {
                try await call.client.launches(
                    of: words.text("session"), states: words.list("state").map { Launch.State(rawValue: $0) },
                    kinds: words.list("kind"), cursor: $0, limit: 1000)
            },
            { launch in
                let last = launch.attempts.last
                return row(launch) + [last.map { result($0, deadline: launch.isFetch ? nil : deadline) } ?? "-"]
            })
    }

    /// Seconds from the 2xx to the completion; `nil` for a key that may not read the app.
    private static func launchDeadline(_ call: Invocation) async -> Double? {
        try? await call.client.app().webhook.launchDeadline
    }

    static func launch(_ call: Invocation) async throws {
        let launch = try await call.client.launch(call.words.text("LAUNCH") ?? "")
        let deadline = launch.isFetch ? nil : await launchDeadline(call)
        try call.output.show(launch) { launch in
            var lines = ["\(launch.launchId): \(launch.kind), \(launch.state)"]
            if let session = launch.sessionIdentifier {
                lines.append("Session \(session): \(launch.reasons.joined(separator: ", "))")
            }
            lines += launch.attempts.map { "Attempt \($0.number): \(words($0, deadline: deadline))" }
            if let next = launch.nextAttemptAt {
                lines.append("The next attempt begins \(Words.distance(next) ?? next).")
            }
            return lines
        }
    }

    private static func row(_ launch: Launch) -> [String] {
        let created = Terminal.isTerminal(STDOUT_FILENO) ? Words.time(launch.createdAt) : launch.createdAt
        return [
            launch.launchId, launch.kind, launch.state.rawValue, "attempts \(launch.attempts.count)",
            launch.sessionIdentifier ?? "-", created,
        ]
    }

    static func complete(_ call: Invocation) async throws {
        let identifier = call.words.text("LAUNCH") ?? ""
        let launch: Launch
        if let result = call.words.text("RESULT") {
            launch = try await call.client.completeFetch(identifier, result: .init(rawValue: result))
        } else {
            launch = try await call.client.completeLaunch(identifier)
        }
        try call.output.row(launch, row)
    }

    // MARK: Refresh

    static func refresh(_ call: Invocation) async throws {
        guard let word = call.words.text("INTERVAL") else {
            return try show(try await call.client.backgroundRefresh(), call)
        }
        let interval: FetchInterval
        switch word {
        case "never": interval = .never
        case "minimum": interval = .minimum
        default:
            guard let seconds = Amount.seconds(word) else {
                throw CallWords.Fault(
                    text: "INTERVAL must be never, minimum or a time such as 3600 or 1h: \(word)", command: "refresh")
            }
            interval = .seconds(seconds)
        }
        try show(try await call.client.setMinimumBackgroundFetchInterval(interval), call)
    }

    private static func show(_ refresh: BackgroundRefresh, _ call: Invocation) throws {
        try call.output.show(refresh) { refresh in
            let interval =
                switch refresh.minimumBackgroundFetchInterval {
                case .never: "never"
                case .minimum: "minimum"
                case .seconds(let seconds): "\(seconds) s"
                }
            let next = refresh.nextFetchAt ?? "-"
            return ["\(interval)\t\(refresh.backgroundRefreshStatus)\tnext \(next)\t\(refresh.why)"]
                + refresh.history.map { "\($0.launchId)\t\($0.at)\t\($0.result.map { "\($0)" } ?? "open")" }
        }
    }

    static func fetch(_ call: Invocation) async throws {
        try call.output.row(try await call.client.simulateFetch(), row)
    }

    // MARK: Apps

    static func own(_ call: Invocation) async throws {
        try call.output.show(try await call.client.app()) { app in
            let limits = app.limits
            return [
                "\(app.identifier), \(app.state)", "Webhook: \(app.webhook.url ?? "none"), \(app.webhook.state)",
                "Unfinished tasks: \(app.usage.tasks)" + (limits.tasks == .max ? "" : " of \(limits.tasks)"),
                "Stored: \(Words.bytes(app.usage.storedBytes))"
                    + (limits.storedBytes.map { " of \(Words.bytes($0))" } ?? "")
                    + ", on disk \(Words.bytes(app.usage.storedBytesOnDisk))",
                "Background refresh: \(app.backgroundRefreshStatus)",
            ]
        }
    }

    static func apps(_ call: Invocation) async throws {
        try await call.output.list(
            ["app", "state", "tasks", "stored", "webhook"],
            { try await call.client.apps(cursor: $0, limit: 1000) }, row)
    }

    private static func row(_ app: App) -> [String] {
        [app.identifier, app.state, String(app.usage.tasks), String(app.usage.storedBytes), app.webhook.url ?? "-"]
    }

    static func add(_ call: Invocation) async throws {
        let words = call.words
        var creation = AppCreation(identifier: words.text("APP") ?? "")
        if let url = words.text("webhook-url") { creation.webhook = WebhookChange { $0.url = .set(url) } }
        let (tasks, bytes) = (words.number("max-tasks"), words.number("max-bytes"))
        if tasks != nil || bytes != nil {
            creation.limits = AppLimitsChange {
                $0.tasks = tasks
                if let bytes { $0.storedBytes = .set(bytes) }
            }
        }
        try call.output.show(try await call.client.createApp(creation)) { app in
            ["key\t\(app.apiKey ?? "-")", "webhook secret\t\(app.webhook.secret ?? "-")"]
        }
        if !call.output.isJSON { call.output.note("Neither is shown again.") }
    }

    static func set(_ call: Invocation) async throws {
        let words = call.words
        let change = AppChange {
            switch words.text("webhook-url") {
            case nil: break
            case "-"?: $0.webhook = .set(WebhookChange { $0.url = .clear })
            case let url?: $0.webhook = .set(WebhookChange { $0.url = .set(url) })
            }
            $0.backgroundRefreshStatus = words.text("refresh").map { BackgroundRefreshStatus(rawValue: $0) }
            let (tasks, bytes) = (words.text("max-tasks"), words.text("max-bytes"))
            guard tasks != nil || bytes != nil else { return }
            $0.limits = AppLimitsChange {
                // The API's value for an unlimited number of tasks.
                if let tasks { $0.tasks = Int64(tasks) ?? .max }
                if let bytes { $0.storedBytes = Int64(bytes).map { .set($0) } ?? .clear }
            }
        }
        guard change != AppChange() else {
            throw CallWords.Fault(text: "name at least one change", command: "apps set")
        }
        try call.output.show(try await call.client.change(change, ofApp: words.text("APP") ?? "")) { app in
            let bytes = app.limits.storedBytes.map { Words.bytes($0) } ?? "any number of bytes"
            let tasks = app.limits.tasks == .max ? "any number of tasks" : app.limits.tasks.counted("task")
            return [(row(app) + ["\(tasks)", bytes, "refresh \(app.backgroundRefreshStatus)"]).joined(separator: "\t")]
        }
    }

    static func remove(_ call: Invocation) async throws {
        try await call.client.deleteApp(call.words.text("APP") ?? "")
    }

    static func keys(_ call: Invocation) async throws {
        try await call.output.list(
            ["key", "scopes", "expires"],
            { try await call.client.keys(ofApp: call.words.text("APP") ?? "", cursor: $0, limit: 1000) }, row)
    }

    private static func row(_ key: AppKey) -> [String] {
        [key.keyIdentifier, key.scopes.map(\.rawValue).joined(separator: ","), key.expiresAt ?? "-"]
    }

    static func addKey(_ call: Invocation) async throws {
        let creation = AppKeyCreation {
            let scopes = call.words.texts("scope").map { Scope(rawValue: $0) }
            if !scopes.isEmpty { $0.scopes = scopes }
            $0.expiresAt = call.words.text("expires")
        }
        let key = try await call.client.createKey(creation, ofApp: call.words.text("APP") ?? "")
        try call.output.show(key) { ["\($0.keyIdentifier)\t\($0.apiKey ?? "-")"] }
        if !call.output.isJSON { call.output.note("The key is not shown again.") }
    }

    static func revokeKey(_ call: Invocation) async throws {
        try await call.client.deleteKey(call.words.text("KEY") ?? "", ofApp: call.words.text("APP") ?? "")
    }
}

extension Launch {
    /// Whether the launch has a deadline of its own instead of the webhook's.
    fileprivate var isFetch: Bool { kind == "app.performFetch" }
}
