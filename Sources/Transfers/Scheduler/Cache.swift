import Buckets
import Core
import Store

/// A session with the properties that its transfers need.
final class KnownSession: Sendable {
    let configuration: SessionConfiguration
    let revision: Int64
    let app: String
    let identifier: String

    init(configuration: SessionConfiguration, revision: Int64 = 0, app: String, identifier: String) {
        self.configuration = configuration
        self.revision = revision
        self.app = app
        self.identifier = identifier
    }
}

extension Scheduler {
    /// Rows of the store in memory, which save a read for each transfer. A dropped entry is read again.
    struct Cache {
        struct App {
            var hasWebhook: Bool?
            var hasCredentials: Bool?
        }

        /// Maximum number of sessions and apps in the cache, beyond those with transfers.
        static let limit = 4096

        var sessions: [SessionID: KnownSession] = [:]
        var apps: [AppID: App] = [:]
        let cookies: CookieJars

        init(cookies: CookieJars) { self.cookies = cookies }

        /// Whether a task of the lane can begin without a read of its session.
        var knows: @Sendable (QueuedLane) -> Bool {
            { [sessions, cookies] lane in
                sessions[lane.session].map { $0.revision >= lane.revision } == true && cookies.have(lane.session)
            }
        }

        /// Adds a session. Sessions in use stay.
        mutating func remember(_ session: SessionID, _ known: KnownSession, inUse: () -> Set<SessionID>) {
            if sessions.count >= Self.limit {
                let used = inUse()
                sessions = sessions.filter { used.contains($0.key) }
            }
            sessions[session] = known
        }

        mutating func change(_ app: AppID, _ change: (inout App) -> Void) {
            if apps.count >= Self.limit { apps = [:] }
            change(&apps[app, default: App()])
        }
    }

    /// Caches a session of claimed tasks.
    @discardableResult
    func remember(_ session: ClaimedSession) -> KnownSession {
        let known = KnownSession(
            configuration: session.configuration, revision: session.revision, app: session.appIdentifier,
            identifier: session.identifier)
        // Limits of sessions with transfers are read from the cache.
        cache.remember(session.id, known) { Set(flights.values.map(\.transfer.task.session)) }
        cache.cookies.remember(session.cookies, of: session.id)
        if cache.apps[session.app]?.hasCredentials == nil {
            cache.change(session.app) { $0.hasCredentials = session.hasCredentials }
        }
        return known
    }

    /// The cached session, read again if the store has a later revision: other nodes change sessions as well.
    func known(_ session: SessionID, revision: Int64 = 0) async throws -> KnownSession {
        if let known = cache.sessions[session], known.revision >= revision { return known }
        return remember(try await store.tasks.claimedSession(session))
    }

    /// Whether the app can answer a question: it has a webhook, or a client with a stream, a held request or a lease, or
    /// had one within the grace period.
    ///
    /// If the store cannot be read, the app is asked: a question that it cannot answer ends at its deadline.
    func canAsk(_ transfer: Transfer) async -> Bool {
        guard transfer.configuration.authenticationChallenges == .ask else { return false }
        let session = transfer.task.session
        let (grace, now) = (settings.detachGrace, clock.now)
        if outlet.attendance.hasClient(session, within: grace, before: now) { return true }
        do {
            if try await hasWebhook(transfer.task.app) { return true }
            if try await store.sessions.attachmentElsewhere(to: session) != nil { return true }
            guard let attachment = try await store.sessions.read(session).attachment else { return false }
            return attachment.detachedAt(now).map { $0 + grace > now } ?? attachment.isHeld(at: now)
        } catch {
            return true
        }
    }

    private func hasWebhook(_ app: AppID) async throws -> Bool {
        if let known = cache.apps[app]?.hasWebhook { return known }
        let hasWebhook = try await store.apps.read(app).webhook.url != nil
        cache.change(app) { $0.hasWebhook = hasWebhook }
        return hasWebhook
    }

    /// Reads the credentials that the store and the app's answers have for the next request's server.
    func access(for transfer: Transfer) async throws -> Access.Found {
        let url = transfer.request.url
        var found = Access.Found()
        if transfer.isAtBucket, let object = transfer.specification.request.object {
            guard let client = settings.buckets[object.bucket], let target = settings.target(of: object) else {
                throw BucketFault.isGone(object.bucket)
            }
            found.bucket = Access.Bucket(fields: try await client.fields(toGet: target), egress: client.egress)
        }
        found.stored = try await storedCredentials(for: transfer, host: url.host, port: Int(url.port))
            .filter { transfer.isAt($0.space) }
        if let proxy = transfer.configuration.proxy, proxy.challengeScheme != nil {
            found.storedForProxy = try await storedCredentials(for: transfer, host: proxy.host, port: proxy.port)
                .filter { $0.space.isAt(proxy) }
        }
        for step in transfer.progress.authentication where step.disposition == .useCredential {
            guard let given = try await store.questions.answerGiven(to: step.questionId),
                let own = given.answer.credential,
                let space = given.question.protectionSpace
            else { continue }
            found.given.append(Access.Found.Given(space: space, credential: own, at: given.at))
        }
        return found
    }

    private func storedCredentials(
        for transfer: Transfer, host: String, port: Int
    ) async throws -> [KnownCredential] {
        let app = transfer.task.app
        // Another node may have stored a credential since the question.
        if cache.apps[app]?.hasCredentials == false, !transfer.progress.authentication.isEmpty {
            cache.change(app) { $0.hasCredentials = nil }
        }
        if cache.apps[app]?.hasCredentials == nil {
            let hasCredentials = try await store.questions.hasCredentials(app)
            cache.change(app) { $0.hasCredentials = hasCredentials }
        }
        guard cache.apps[app]?.hasCredentials == true else { return [] }
        return try await store.questions.credentials(host: host, port: port, app: app, session: transfer.task.session)
    }
}
