import CSQLite
import Core
import Formats
import Foundation
import SQL
import TestSupport
import Testing

@testable import Store

/// Databases of each version, as their program stored them: `Tests/Databases` has them as SQL, as written by `.dump` of
/// SQLite's shell, with the version at the end.
@Suite(.enabled(if: !TestStore.isOnServer)) struct SchemaTests {
    @Test(arguments: Schema.migrations.map(\.version))
    func `A database of each version is migrated, and all its rows can be read`(version: Int) async throws {
        let folder = TemporaryFolder()
        try Self.restore(version, to: folder.file("test.db"))
        let fixture = try await StoreFixture(folder: folder)
        let store = fixture.store
        let new = try await StoreFixture()
        #expect(try await Self.schema(of: store) == Self.schema(of: new.store))
        #expect(try await store.upkeep.hasRightKey())
        try await expectSoundLedger(fixture)

        let app = try await store.apps.read(identifier: "app")
        #expect(try await store.apps.keys(of: app.id).count == 1)
        #expect(
            try await store.questions.credentials(of: app.id, after: 0, limit: 10).map(\.credential.user) == ["user"])
        #expect(try await store.files.bodies(of: app.id, isComplete: nil, isInUse: nil, after: 0, limit: 10).count == 1)
        #expect(try await store.apps.refresh(of: app.id).interval == .seconds(900))
        let session = try await store.sessions.read("session", app: app.id)
        #expect(try await store.sessions.cookies(of: session.id) == ["cookie"])
        let tasks = try await store.tasks.list(in: session.id, TaskFilter(), after: 0, limit: 10)
        #expect(tasks.map(\.phase) == [nil, .suspended, .queued, .awaitingAnswer])
        #expect(tasks.map(\.outcome) == [.succeeded, nil, nil, nil])
        let ofApp = try await store.tasks.list(
            of: app.id, TaskFilter(), after: 0, limit: 10, known: { _ in Never?.none })
        #expect(ofApp.compactMap(\.task?.record.id) == tasks.map(\.id))
        #expect(try await store.files.content(of: tasks[0].id).record.length == 7)
        let events = try await store.sessions.events(of: session.id, after: 0, limit: 10).events.map(\.kind)
        #expect(events == [.didFinishDownloading, .didFinishCollectingMetrics, .didComplete, .didReceiveChallenge])
        let questions = try await store.questions.list(of: app.id, session: nil, states: [.open], after: 0, limit: 10)
        #expect(questions.map(\.question.questionId) == ["q"])
        let launches = try await store.launches.list(
            of: app.id, session: nil, states: [], kinds: [], after: 0, limit: 10)
        #expect(launches.map(\.launch.kind) == [.handleEvents])
        #expect(try await fixture.claim().map(\.id) == [tasks[2].id])
        let sets = try await store.sets.list(of: app.id, ListSpan(), after: 0, limit: 10)
        #expect(sets.map(\.name) == (version >= 19 ? ["set"] : []))
    }

    @Test func `The places of repositories in the cache of huggingface_hub become their folders`() async throws {
        let places = [
            "hf-cache/out/hub/model/org/a": "root/out/hub/models--org--a",
            "hf-cache/out/a/b/dataset/gpt2": "root/out/a/b/datasets--gpt2",
            "hf-cache/out/é/space/o/n.1": "root/out/é/spaces--o--n.1", "root/out/x": "root/out/x",
        ]
        let rows = places.keys.map { place in
            """
            INSERT INTO file_set (app, name, configuration_document, place, created_at) \
            VALUES (1, '\(place)', X'7b7d', '\(place)', 0);
            """
        }
        let folder = TemporaryFolder()
        try Self.restore(21, rows.joined(separator: "\n"), to: folder.file("test.db"))
        let fixture = try await StoreFixture(folder: folder)
        let migrated = try await fixture.store.database.read { db in
            try db.all("SELECT name, place FROM file_set WHERE place IS NOT NULL") { ($0.text(0), $0.text(1)) }
        }
        #expect(Dictionary(uniqueKeysWithValues: migrated) == places)
    }

    @Test func `The schema accepts every word that the program writes`() async throws {
        let fixture = try await StoreFixture()
        let sql = try await Self.schema(of: fixture.store).joined(separator: "\n")
        /// The words in a column's check, in every table with such a column.
        func words(_ column: String) -> Set<[String]> {
            Set(
                sql.matches(of: /CHECK \(([^)]*)\)/).map(\.1).compactMap { check in
                    let pairs = check.split(separator: "OR").map { $0.split(separator: "=") }
                    let names = Set(pairs.map { $0[0].trimmingCharacters(in: .whitespacesAndNewlines) })
                    guard names == [column] else { return nil }
                    return pairs.map { $0[1].trimmingCharacters(in: CharacterSet(charactersIn: " \n'")) }
                })
        }
        func all<Value: RawRepresentable<String> & CaseIterable>(_: Value.Type) -> [String] {
            Value.allCases.map(\.rawValue)
        }
        #expect(
            words("state") == [
                all(SessionState.Phase.self), all(TaskState.self), all(LaunchState.Phase.self),
                all(QuestionState.Phase.self), all(SetVersionState.self), all(SetFileState.self),
            ])
        #expect(
            words("kind") == [
                all(TaskKind.self), all(EventKind.self), all(LaunchKind.self), all(Presence.Kind.self),
            ])
        #expect(words("stage") == [all(TaskLife.Phase.self)])
        #expect(words("outcome") == [all(Outcome.self)])
        #expect(words("urgency") == [all(LaunchUrgency.self)])
        #expect(words("algorithm") == [all(DigestAlgorithm.self)])
        #expect(words("disposition") == [all(Answer.Disposition.self)])
        #expect(words("result") == [all(BackgroundRefresh.Result.self)])
        #expect(words("refresh_status") == [all(BackgroundRefreshStatus.self)])
    }

    @Test func `An unknown word is an error`() async throws {
        let fixture = try await StoreFixture()
        let task = try await fixture.create(fixture.download(), in: fixture.makeSession())
        try await fixture.store.database.write { db in
            try db.execute("PRAGMA ignore_check_constraints = ON")
            try db.execute("UPDATE live SET stage = 'dreaming'")
        }
        let error = await #expect(throws: UnknownValue.self) { try await fixture.store.tasks.read(task.id) }
        #expect(error?.description == "the database has an unknown Phase: dreaming")
    }

    @Test func `A state without its members is an error`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        let task = try await fixture.create(fixture.download(), in: session)
        _ = try await fixture.claim()
        try await fixture.settle(fixture.ask(task.id, "q"))
        func error(_ read: () async throws -> Void) async -> String? {
            await #expect(throws: UnknownValue.self) { try await read() }?.description
        }
        let store = fixture.store
        try await store.database.write { try $0.execute("UPDATE question SET state = 'answered'") }
        #expect(
            await error { _ = try await store.questions.read("q", app: session.app) }
                == "the database has an unknown QuestionState: answered without its answer")
        for phase in ["delayed", "retryWait", "waitingForConnectivity", "suspended", "awaitingAnswer"] {
            try await store.database.write { db in
                try db.execute("UPDATE live SET stage = ?1, question = NULL", phase)
            }
            #expect(
                await error { _ = try await store.tasks.read(task.id) }
                    == "the database has an unknown TaskLife: \(phase) without its data")
        }
        try await store.database.write { db in
            try db.execute("DELETE FROM live")
            try db.execute("UPDATE session SET state = 'invalid'")
        }
        #expect(
            await error { _ = try await store.tasks.read(task.id) } == "the database has an unknown TaskLife: running")
        #expect(
            await error { _ = try await store.sessions.read(session.id) }
                == "the database has an unknown SessionState: invalid without its moment")
    }

    /// - Parameter rows: Statements that add rows.
    private static func restore(_ version: Int, _ rows: String = "", to path: String) throws {
        let sql = try String(contentsOfFile: "\(repository)/Tests/Databases/version\(version).sql", encoding: .utf8)
        var handle: OpaquePointer?
        try #require(sqlite3_open(path, &handle) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        let code = sqlite3_exec(handle, sql + rows, nil, nil, nil)
        try #require(code == SQLITE_OK, "\(String(cString: sqlite3_errmsg(handle)))")
    }

    /// The schema, as the statements that created it.
    private static func schema(of store: Store) async throws -> [String] {
        try await store.database.read { db in
            try db.all("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name") { $0.text(0) }
        }
    }
}
