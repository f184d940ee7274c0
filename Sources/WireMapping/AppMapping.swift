package import Core
package import Wire

extension App {
    /// The client's view of an app. Its key and its webhook's secret are added only in the response to its creation.
    ///
    /// - Parameter systemStatus: The operator's status for all apps; the stricter of the two is shown.
    package init(_ record: AppRecord, systemStatus: Core.BackgroundRefreshStatus) {
        self.init()
        identifier = record.identifier
        state = record.isForceQuit ? "forceQuit" : "active"
        webhook = Webhook(record.webhook)
        backgroundRefreshStatus = Wire.BackgroundRefreshStatus(
            record.backgroundRefreshStatus.stricter(systemStatus))
        limits = Wire.AppLimits(record.limits)
        usage = AppUsage {
            $0.tasks = record.unfinishedTasks
            $0.storedBytes = record.storedBytes
            $0.storedBytesOnDisk = record.storedBytesOnDisk
        }
        createdAt = record.createdAt.rfc3339
        revision = record.revision
    }
}

extension CacheUsage {
    package init(_ record: CacheRecord, capacity: Int64) {
        self.init()
        entries = record.entries
        bytes = record.bytes
        self.capacity = capacity
        hits = record.hits
        revalidations = record.revalidations
        collapsed = record.collapsed
    }
}

extension Webhook {
    package init(_ core: WebhookSettings) {
        self.init()
        url = core.url
        state = WebhookState(core.state)
        disabledReason = core.disabledReason
        includeEvents = Int64(core.includeEvents)
        launchDeadline = Double(core.launchDeadline)
    }
}

extension WebhookSettings {
    /// The settings with the changes of a request.
    package func applying(_ change: WebhookChange?) -> WebhookSettings {
        guard let change else { return self }
        var settings = self
        settings.url = change.url.applied(to: url)
        if let state = change.state, let value = State(state) {
            settings.state = value
            if value != .disabled { settings.disabledReason = nil }
        }
        if let count = change.includeEvents { settings.includeEvents = Int(clamping: count) }
        // In whole seconds, rounded up.
        if let seconds = change.launchDeadline { settings.launchDeadline = Int(seconds.rounded(.up)) }
        return settings
    }
}

extension Wire.AppLimits {
    package init(_ core: Core.AppLimits) {
        self.init()
        tasks = core.maximumUnfinishedTasks
        storedBytes = core.maximumStoredBytes == .max ? nil : core.maximumStoredBytes
    }
}

extension Core.AppLimits {
    /// The limits with the changes of a request; null means no limit.
    package func applying(_ change: AppLimitsChange?) -> Core.AppLimits {
        guard let change else { return self }
        var limits = self
        if let tasks = change.tasks { limits.maximumUnfinishedTasks = tasks }
        if let bytes = change.storedBytes.update { limits.maximumStoredBytes = bytes ?? .max }
        return limits
    }
}

extension WebhookSettings {
    /// The settings with the changes of a request; null means those of an app without a webhook.
    fileprivate func applying(_ change: Change<WebhookChange>) -> WebhookSettings? {
        switch change {
        case .unchanged: nil
        case .clear: WebhookSettings()
        case .set(let change): applying(change)
        }
    }
}

extension AppChanges {
    /// The operator's changes to an app.
    package init(_ wire: AppChange, of app: AppRecord) {
        self.init()
        webhook = app.webhook.applying(wire.webhook)
        backgroundRefreshStatus = wire.backgroundRefreshStatus.flatMap { Core.BackgroundRefreshStatus($0) }
        if let change = wire.limits { limits = app.limits.applying(change) }
    }

    /// An app's changes to itself.
    package init(_ wire: OwnAppChange, of app: AppRecord) {
        self.init()
        webhook = app.webhook.applying(wire.webhook)
    }
}

extension AppKey {
    /// - Parameter secret: The key itself, for the only response that shows it.
    package init(_ record: KeyRecord, secret: String? = nil) {
        self.init()
        keyIdentifier = record.keyIdentifier
        apiKey = secret
        scopes = record.scopes.map { Wire.Scope($0) }
        createdAt = record.createdAt.rfc3339
        expiresAt = record.expiresAt?.rfc3339
    }
}
