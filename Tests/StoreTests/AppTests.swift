import Core
import SQL
import TestSupport
import Testing

@testable import Store

struct AppTests {
    private func key(_ name: String, _ app: AppID, _ fixture: StoreFixture) -> KeyRecord {
        KeyRecord(
            app: app, keyIdentifier: name, hash: [4, 5], scopes: [.events, .sessionsRead], createdAt: fixture.now,
            expiresAt: fixture.now + .seconds(60))
    }

    @Test
    func `An identifier belongs to one app`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp("com.example")
        await #expect(throws: DomainError.appExists) { try await fixture.makeApp("com.example") }
        #expect(try await fixture.store.apps.read(identifier: "com.example").id == app)
        let other = try await fixture.makeApp()
        #expect(try await fixture.store.apps.list(after: 0, limit: 1).map(\.id) == [app])
        #expect(try await fixture.store.apps.list(after: app.rawValue, limit: 10).map(\.id) == [other])
    }

    @Test
    func `Keys are found by their identifier, and not after their deletion`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        let record = key("k", app, fixture)
        try await fixture.store.apps.addKey(record)
        #expect(try await fixture.store.apps.key("k") == record)
        #expect(try await fixture.store.apps.keys(of: app).count == 2)
        let other = try await fixture.makeApp()
        await #expect(throws: DomainError.notFound) { try await fixture.store.apps.deleteKey("k", of: other) }
        try await fixture.store.apps.deleteKey("k", of: app)
        #expect(try await fixture.store.apps.key("k") == nil)
    }

    @Test
    func `The identifiers of a deleted app's keys can be used again at once`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp("a")
        try await fixture.store.apps.addKey(key("k", app, fixture))
        _ = try await fixture.store.apps.delete(app)
        #expect(try await fixture.store.apps.keys(of: app).isEmpty)
        let again = try await fixture.makeApp("a")
        try await fixture.store.apps.addKey(key("k", again, fixture))
        #expect(try await fixture.store.apps.key("k")?.app == again)
    }

    @Test
    func `A replaced webhook secret signs within its grace period, after the current one`() async throws {
        let fixture = try await StoreFixture()
        let app = try await fixture.makeApp()
        try await fixture.store.apps.rotateWebhookSecret(
            of: app, to: [2], previousExpiresAt: fixture.now + .seconds(10), at: fixture.now)
        try await fixture.store.apps.rotateWebhookSecret(
            of: app, to: [3], previousExpiresAt: fixture.now + .seconds(20), at: fixture.now)
        #expect(
            try await fixture.store.apps.webhookSecrets(of: app, at: fixture.now)
                == [[3], [2], Array("canary-webhook-secret".utf8)])
        fixture.advance(.seconds(10))
        #expect(try await fixture.store.apps.webhookSecrets(of: app, at: fixture.now) == [[3], [2]])
        fixture.advance(.seconds(10))
        #expect(try await fixture.store.apps.webhookSecrets(of: app, at: fixture.now) == [[3]])
    }

    @Test
    func `Deleting an app deletes all its rows`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession("s")
        _ = try await fixture.store.files.addBody(
            "body_1", app: session.app, storage: .bytes([1]), length: 1, digest: "", mediaType: nil, isComplete: true,
            limit: .max, at: fixture.now)
        try await fixture.finished(try await fixture.makeSession(app: session.app))
        try await fixture.create(
            [fixture.download(), fixture.download(body: .stored("body_1"))], in: session)
        let active = try await fixture.claim(1)
        let other = try await fixture.makeSession()
        try await fixture.create([fixture.download()], in: other)
        #expect(try await fixture.store.apps.delete(session.app) == active.map(\.id))
        await #expect(throws: DomainError.notFound) { try await fixture.store.apps.read(session.app) }
        #expect(try await fixture.claim().map(\.session) == [other.id])
        try await fixture.settle(fixture.completion(active[0].id))
        try await fixture.clean()
        let rest = try await fixture.store.database.read { db in
            try db.all(
                """
                SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM task), (SELECT count(*) FROM body), \
                (SELECT count(*) FROM api_key), (SELECT count(*) FROM launch), (SELECT count(*) FROM incarnation), \
                (SELECT count(*) FROM webhook_secret), (SELECT count(*) FROM app)
                """
            ) { row in (0..<8).map { row.integer(.position($0)) } }
        }
        #expect(rest == [[1, 1, 0, 1, 0, 1, 1, 1]])
        try await expectSoundLedger(fixture)
    }

    @Test
    func `Credentials of a session precede those of its app, one for each protection space`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let space = ProtectionSpace(
            host: "Host.example", port: 443, scheme: "https", realm: nil, authenticationMethod: .bearer)
        func keep(_ token: String, _ owner: SessionID?) async throws {
            try await fixture.store.questions.keep(
                Credential(token: token), for: space, app: session.app, session: owner, credentialId: "cred_\(token)",
                at: fixture.now)
        }
        func find() async throws -> String? {
            try await fixture.store.questions.credentials(
                host: "host.example", port: 443, app: session.app, session: session.id
            ).first?.credential.token
        }
        #expect(try await find() == nil)
        #expect(try await !fixture.store.questions.hasCredentials(session.app))
        try await keep("a", nil)
        try await keep("b", nil)
        #expect(try await find() == "b")
        try await keep("c", session.id)
        #expect(try await find() == "c")
        let listed = try await fixture.store.questions.credentials(of: session.app, after: 0, limit: 10)
        #expect(listed.map(\.credential.credentialId) == ["cred_b", "cred_c"])
        try await fixture.store.sessions.reset(session.id)
        #expect(try await find() == "b")
        try await fixture.store.questions.deleteCredential("cred_b", app: session.app)
        #expect(try await find() == nil)
        await #expect(throws: DomainError.notFound) {
            try await fixture.store.questions.deleteCredential("cred_b", app: session.app)
        }
    }
    @Test(arguments: [1024, 1025, 40_000])
    func `A long realm distinguishes protection spaces as a short one does`(_ length: Int) async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        // Random bytes, which an index cannot compress.
        var generator = SeededGenerator(state: 1)
        let realm = String(
            (0..<length).map { _ in Character(UnicodeScalar(UInt8.random(in: 33...126, using: &generator))) })
        var space = ProtectionSpace(
            host: "host.example", port: 443, scheme: "https", realm: realm, authenticationMethod: .basic)
        func keep(_ user: String) async throws {
            try await fixture.store.questions.keep(
                Credential(user: user, password: "p"), for: space, app: session.app, session: nil,
                credentialId: "cred_\(user)", at: fixture.now)
        }
        try await keep("first")
        try await keep("second")
        space.realm = realm.dropLast() + "~~"
        try await keep("third")
        let found = try await fixture.store.questions.credentials(
            host: "host.example", port: 443, app: session.app, session: session.id)
        #expect(found.map(\.credential.user) == ["third", "second"])
        #expect(found.last?.space.realm == realm)
    }
}
