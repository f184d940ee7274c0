import Base
package import Core
import SQL

extension Transaction {
    /// Evaluates the launch rule of sessions and writes the resulting launches.
    func askLaunchRule(of sessions: [SessionEntry]) throws {
        let sessions = sessions.filter { !$0.isForgotten && $0.sendsLaunches }
        let unknown = sessions.map(\.id).filter { circumstances(of: $0) == nil }
        let read = zip(unknown, try askCircumstances(of: unknown).get())
        let newlyRead = Dictionary(uniqueKeysWithValues: read.map { ($0, $1.first) })
        for session in sessions {
            let known = circumstances(of: session.id) ?? newlyRead[session.id] ?? nil
            try askLaunchRule(session, known ?? Circumstances())
        }
    }

    /// The launch rule's inputs besides the session's own row.
    struct Circumstances {
        /// The newest events of open questions, by kind.
        fileprivate var challenge: Int64 = 0
        fileprivate var delayedRequest: Int64 = 0
        /// Whether clients are attached at other nodes, and when the last one detached.
        fileprivate var isAttachedElsewhere = false
        fileprivate var lastDetachedElsewhere: Timestamp?
    }

    private func askLaunchRule(_ session: SessionEntry, _ circumstances: Circumstances) throws {
        var rule = session.book.rule(
            presence: try presence(of: session, circumstances), unfinishedTasks: session.counts.running)
        rule.sendsLaunchEvents = session.sendsLaunches
        rule.unansweredChallengeSeq = circumstances.challenge
        rule.unansweredDelayedRequestSeq = circumstances.delayedRequest
        switch rule.evaluate(at: now) {
        case .launch(let reasons): try launch(session, reasons, circumstances)
        case .join(let reasons):
            try db.execute(
                "UPDATE launch SET reasons = reasons | ?2 WHERE id = ?1 AND reasons | ?2 <> reasons",
                session.book.openLaunch, reasons.rawValue)
        case .notNow(let until?): aftermath.launchChecks[session.id] = until
        case .notNow(nil), .no: break
        }
    }

    func askCircumstances(of sessions: [SessionID]) throws -> Asked<Circumstances> {
        try db.ask(
            """
            SELECT coalesce(max(CASE WHEN e.kind = 'task.didReceiveChallenge' THEN q.seq END), 0) AS challenge, \
            coalesce(max(CASE WHEN e.kind = 'task.willBeginDelayedRequest' THEN q.seq END), 0) AS delayed_request, \
            (SELECT count(kind) FROM presence WHERE session = ?1 AND node <> ?2) AS attached, \
            (SELECT max(detached_at) FROM presence WHERE session = ?1 AND node <> ?2) AS detached_at \
            FROM question q JOIN event e ON e.session = q.session AND e.seq = q.seq \
            WHERE q.session = ?1 AND q.state = 'open'
            """, sessions.map { [$0.rawValue, node ?? ""] }
        ) { row in
            Circumstances(
                challenge: row.integer("challenge"), delayedRequest: row.integer("delayed_request"),
                isAttachedElsewhere: row.bool("attached"), lastDetachedElsewhere: row.timeOrNil("detached_at"))
        }
    }

    /// The presence in a session: streams and held requests here and at other nodes, and the attachment lease.
    private func presence(of session: SessionEntry, _ circumstances: Circumstances) throws -> Presence {
        var presence = policies.presence(session.id)
        presence.isAttached = presence.isAttached || circumstances.isAttachedElsewhere
        if let elsewhere = circumstances.lastDetachedElsewhere {
            presence.lastDetachedAt = max(presence.lastDetachedAt, elsewhere)
        }
        guard let document = session.attachment else { return presence }
        if let end = presence.join(try documents.decode(Attachment.self, document), at: now) {
            aftermath.launchChecks[session.id] = end
        }
        return presence
    }

    private func launch(
        _ session: SessionEntry, _ reasons: LaunchRule.Reasons, _ circumstances: Circumstances
    ) throws {
        guard let app = try store.apps.read(session.app, db), !app.isForceQuit else { return }
        session.book.openLaunch = try insertLaunch(
            Identifier.make(prefix: "lnch_"), .handleEvents, of: session.app, for: session, app.webhook.parkReason,
            reasons, traceparent: try traceparent(of: cause(of: reasons, session, circumstances), in: session))
        session.revision += 1
    }

    /// The event that causes a launch. Questions, which delay their tasks, precede completions. No single task causes a
    /// stall.
    private func cause(
        of reasons: LaunchRule.Reasons, _ session: SessionEntry, _ circumstances: Circumstances
    ) -> Int64? {
        if reasons.contains(.authenticationRequired) { return circumstances.challenge }
        if reasons.contains(.delayedRequestReady) { return circumstances.delayedRequest }
        return reasons == .tasksStalled ? nil : session.book.lastCompletionSeq
    }

    /// The `traceparent` of the task of an event; `nil` if its request had none, or cannot be read.
    private func traceparent(of event: Int64?, in session: SessionEntry) throws -> String? {
        guard let event else { return nil }
        do {
            return try db.first(
                """
                SELECT t.specification_document, t.session, t.number FROM event e JOIN task t ON t.id = e.task \
                WHERE e.session = ?1 AND e.seq = ?2
                """, session.id.rawValue, event
            ) { row in
                try documents.decode(
                    TaskSpecification.self, row.blob("specification_document"),
                    sealedAs: Store.Tasks.context(SessionID(row.integer("session")), row.integer("number"))
                ).traceparent
            } ?? nil
        } catch is SealError, is UnreadableDocument {
            return nil
        }
    }
}

extension WebhookSettings {
    /// The reason for which launches are parked, or `nil` if they can be sent.
    package var parkReason: LaunchState.ParkReason? {
        if url == nil { return .noURL }
        switch state {
        case .enabled: return nil
        case .paused: return .paused
        case .disabled: return .disabled
        }
    }
}

extension Store.Launches {
    /// Ends the open launch of a session whose incarnation ends.
    func supersede(of session: SessionEntry, _ transaction: Transaction) throws {
        guard let launch = session.book.openLaunch else { return }
        try transaction.move(launch: launch, .sessionEnded)
        session.book.closed(launch)
    }

    /// Supersedes a launch that has not been sent, because a client attached by itself.
    func welcomeClient(of session: SessionEntry, _ transaction: Transaction) throws {
        guard let launch = session.book.openLaunch else { return }
        if try transaction.move(launch: launch, .clientAttached).contains(.makeRoom) {
            session.book.closed(launch)
            session.isChanged = true
        }
    }

    /// Evaluates the launch rule of sessions after clients have detached.
    package func askRules(of sessions: [SessionID], at now: Timestamp) async throws -> Aftermath {
        try await transact(at: now) { transaction in
            for id in sessions {
                guard let session = try transaction.sessionIfPresent(id) else { continue }
                let revision = session.revision
                try transaction.askLaunchRule(of: [session])
                if session.revision != revision { try session.write(transaction.db) }
            }
        }.1
    }
}
