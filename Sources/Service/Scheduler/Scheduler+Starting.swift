import Base
import Buckets
import Core
import Files
import Store
import TransferEngine

/// Transfers that begin, stop and let go of their place.
extension Scheduler {
    func nextExchangeID() -> ExchangeID {
        defer { nextExchange += 1 }
        return ExchangeID(rawValue: nextExchange)
    }

    func start(_ transfer: Transfer) {
        if transfer.segmented != nil { return startSegments(transfer) }
        var transfer = transfer
        let exchange = nextExchangeID()
        transfer.exchange = exchange
        transfer.attemptStartedAt = clock.now
        transfer.triedSources.insert(transfer.source)
        transfer.cookies = cookiesToSend(with: transfer)
        (transfer.writing, transfer.written) = (nil, nil)
        let id = transfer.task.id
        transfers[id] = transfer
        tasksOfExchanges[exchange] = id
        if transfer.source > 0 {
            let lane = lane(of: transfer, at: transfer.url.origin)
            agenda.withLock { $0.count(connection: exchange, lane) }
        }
        live.began(
            id, session: transfer.task.session,
            exchange: exchange, offset: transfer.resuming?.offset ?? 0,
            sentBefore: transfer.uploadOffset, stallInterval: transfer.configuration.stallInterval.map { .seconds($0) })
        outlet.transferBegan(in: transfer.task.session)
        let isLimited = isLimited(transfer.task.session)
        engine.start(
            transfer.request(
                folder: folder, settings: settings, bandwidthLimit: isLimited ? bandwidthShare(of: transfer) : nil))
        if isLimited { shareBandwidth(of: transfer.task.session) }
    }

    func refuse(_ transfer: Transfer, _ error: TaskError) {
        var result = TaskResult(progress: transfer.progress)
        result.progress.attempts.attempts += 1
        result.error = error
        conclude(
            Settlement(
                task: transfer.task.id, .completed(.failed, result, nil), leavesPartialFile: transfer.hasPartialFile))
    }

    func stop(_ id: TaskID, reason: Transfer.StopReason) {
        guard var transfer = transfers[id] else {
            return outlet.janitor.tell(.removeIfOrphan(folder.partial(id.rawValue)))
        }
        live.ended(id)
        transfer.stopReason = reason
        transfers[id] = transfer
        for exchange in transfer.exchanges { engine.stop(exchange) }
        if let (client, exchange) = transfer.fetching { client.stop(exchange) }
        if reason == .decided { transfer.decided.ring() }
        if transfer.waitsForConnections { settle(Settlement(task: id, .interrupted(transfer.progress)), transfer) }
    }

    /// Has stored how a transfer ended, and forgets it.
    func conclude(_ settlement: Settlement) {
        var settlement = settlement
        settlement.request = transfers[settlement.task]?.task.specification.request
        settlements.append(settlement)
        release(settlement.task)
    }

    /// Forgets a transfer that ended and frees its place.
    func release(_ id: TaskID) {
        live.ended(id)
        widening.remove(id)
        guard let transfer = transfers.removeValue(forKey: id) else { return }
        settledSessions.insert(transfer.task.session)
        if isLimited(transfer.task.session) { shareBandwidth(of: transfer.task.session) }
        cookies.letGo(transfer.task.session)
        let now = clock.now
        agenda.withLock { $0.ended(id, in: transfer.task.lane, at: now) }
        if abandonedUploads.remove(id) != nil { inbox.tell(.abandonUpload(id)) }
    }

    /// Takes the suspicion from a task that has run alone for long enough.
    func clear(_ id: TaskID) {
        guard let transfer = transfers[id] else { return }
        var settlement = Settlement(task: id, .advanced(transfer.progress))
        settlement.endsSuspicion = true
        settlements.append(settlement)
        log.of(transfer.name).info("the task has run alone without a crash; others go on beside it")
    }

    /// Sessions that are remembered, beyond those that transfer something.
    private static let sessionsKnown = 4096

    /// What is remembered of a session, read anew where it has a later revision by now: other nodes change it as well.
    func known(_ session: SessionID, revision: Int64 = 0) async throws -> KnownSession {
        if let known = sessions[session], known.revision >= revision { return known }
        let (names, record) = (try await store.names(of: session), try await store.session(session))
        let known = KnownSession(
            configuration: record.configuration, revision: record.revision, app: names.app, identifier: names.session)
        if sessions.count >= Self.sessionsKnown {
            // The limits of those that transfer something are asked of what is known.
            let used = Set(transfers.values.map(\.task.session))
            sessions = sessions.filter { used.contains($0.key) }
        }
        sessions[session] = known
        return known
    }

    /// Whether the app can answer the question of a transfer's end, if there is one: it has a webhook, or a client with a
    /// stream, a held read or a lease.
    func canAsk(_ transfer: Transfer, _ result: ExchangeResult) async -> Bool {
        guard result.mayAsk, transfer.configuration.authenticationChallenges == .ask else { return false }
        if outlet.attendance.presence(of: transfer.task.session).isAttached { return true }
        if await hasWebhook(transfer.task.app) { return true }
        if (try? await store.attachmentElsewhere(to: transfer.task.session)) ?? nil != nil { return true }
        let session = try? await store.session(transfer.task.session)
        return session?.attachment?.isHeld(at: clock.now) ?? false
    }

    private func hasWebhook(_ app: AppID) async -> Bool {
        if let known = webhooks[app] { return known }
        let hasWebhook = (try? await store.app(app).webhook.url) != nil
        webhooks[app] = hasWebhook
        return hasWebhook
    }

    /// Gives a transfer the credentials that the store and the answers so far have for where it goes next, and no others.
    func authorize(_ transfer: inout Transfer) async throws {
        let url = transfer.url
        try await signForBucket(&transfer)
        transfer.storedCredentials = try await storedCredentials(
            for: transfer, host: url.host, port: Int(url.port)
        ).filter { transfer.isAt($0.space) }
        let proxy = transfer.configuration.proxy
        if let proxy, proxy.challengeScheme != nil {
            transfer.storedProxyCredentials = try await storedCredentials(
                for: transfer, host: proxy.host, port: proxy.port
            ).filter { $0.space.isAt(proxy) }
        }
        var answers: [(space: ProtectionSpace, credential: Credential)] = []
        for step in transfer.progress.authentication where step.disposition == .useCredential {
            guard let given = try await store.answerGiven(to: step.questionId), let own = given.answer.credential,
                let space = given.question.protectionSpace
            else { continue }
            // What was stored for the same since then is the app's last word.
            if !transfer.prefersStored(for: space, since: given.at) { answers.append((space, own)) }
        }
        var credential = transfer.storedCredential
        var proxyCredential = transfer.storedProxyCredential
        for (space, own) in answers {
            if let proxy, space.isAt(proxy) { proxyCredential = own }
            if transfer.isAt(space) { credential.adopt(own) }
        }
        transfer.credential = credential.isEmpty ? nil : credential
        transfer.credentialOrigin = url.origin
        transfer.proxyCredential = proxyCredential
    }

    private func storedCredentials(
        for transfer: Transfer, host: String, port: Int
    ) async throws -> [KnownCredential] {
        let app = transfer.task.app
        // Another node may have stored one since the question.
        if appsWithCredentials[app] == false, !transfer.progress.authentication.isEmpty {
            appsWithCredentials[app] = nil
        }
        if appsWithCredentials[app] == nil { appsWithCredentials[app] = try await store.hasCredentials(app) }
        guard appsWithCredentials[app] == true else { return [] }
        return try await store.credentials(host: host, port: port, app: app, session: transfer.task.session)
    }
}
