import CSQLite
import Foundation
import TestSupport
import Testing

/// SQLite's plan of each statement of the store: by an index, and in its order.
@Suite(.enabled(if: !TestStore.isOnServer)) struct QueryPlanTests {
    /// Statements that scan or sort, by their beginning, with their bound.
    private static let reasoned: [(beginning: String, bound: String)] = [
        ("SELECT DISTINCT node FROM useless_file", "files that are to be removed, when a node has died"),
        ("SELECT app FROM deleted_app ORDER BY app LIMIT 100", "in the order of its key, a hundred"),
        ("SELECT id FROM session WHERE forgotten = 1 ORDER BY id LIMIT 1", "the first of an index of those alone"),
        (
            "SELECT task FROM live WHERE stage = 'active' AND (node IS NULL",
            "an index of transfers under way alone: --max-transfers"
        ),
        (
            "SELECT l.session, l.origin, count(*) AS running FROM (SELECT lane FROM live WHERE node <",
            "an index of tasks that nodes have, those of others alone"
        ),
        ("SELECT DISTINCT node FROM launch WHERE state = 'delivering'", "an index of launches in flight alone"),
        ("UPDATE lane SET served_at = ?4, queued = (SELECT", "counts what the next statement takes"),
        ("SELECT DISTINCT node FROM presence", "clients of the last hour, when a node has died"),
        ("SELECT task FROM live WHERE app = ?1 AND stage = 'active'", "an index of transfers under way alone"),
        ("SELECT id FROM app ORDER BY id", "apps, whose common refresh status an operator changes"),
        (
            "SELECT public_id, space_document, secret, created_at FROM credential WHERE app = ?1 AND coalesce(session, 0) IN",
            "sorts the credentials of one app for one host and port"
        ),
        ("SELECT secret FROM webhook_secret WHERE app = ?1", "sorts the secrets of one app within their grace"),
        (
            "SELECT id, app, state, kind, expires_at FROM launch WHERE state IN ('delivering', 'launched')",
            "sorts the launches that wait for an answer or an app: those in flight"
        ),
        ("SELECT 0 WHERE EXISTS (SELECT 1 FROM question WHERE releasing = 1)", "the first of indexes of those alone"),
        ("SELECT id FROM flight WHERE releasing = 1 ORDER BY id LIMIT 20", "twenty of an index of those alone"),
        ("SELECT id FROM cached WHERE app = (SELECT app FROM cache", "the first of an index by size, then by age"),
        (
            "SELECT public_id FROM question WHERE releasing = 1 ORDER BY id LIMIT 20",
            "twenty of an index of those alone"
        ),
        ("WITH RECURSIVE queued (app)", "the rows that it finds itself, one look into the index for each"),
        ("SELECT 1 FROM lane WHERE queued > 0 LIMIT 1", "the first of an index of those alone"),
        (
            "SELECT task, disk_kept, disk_needed, disk_not_before <= ?1 OR disk_not_before > ?3 AS ready",
            "in the order of an index of those alone, as many as are asked for"
        ),
        (
            "SELECT l.id, l.app, l.session, l.origin, 1 AS queued",
            "in the order of an index of suspects alone, as many as are asked for"
        ),
        ("SELECT task FROM live WHERE crashes > 0", "an index of suspects alone: --max-transfers"),
        ("SELECT DISTINCT node FROM held_connection", "origins of downloads in segments, when a node has died"),
        ("SELECT task, left_by FROM live WHERE left_by IS NOT NULL", leftBehind),
        ("UPDATE live SET left_by = NULL WHERE left_by IS NOT NULL", leftBehind),
        (
            "SELECT task, move_document FROM live WHERE move_document IS NOT NULL",
            "an index of moves under way alone, once at start"
        ),
        (
            "UPDATE live SET move_document = NULL WHERE move_document IS NOT NULL",
            "an index of moves under way alone, once at start"
        ),
        (
            "SELECT move_document FROM live WHERE move_document IS NOT NULL AND +session",
            "an index of moves under way alone: --max-transfers"
        ),
        ("SELECT secret, app FROM webhook_secret LIMIT 1", "one row, once at start"),
        ("SELECT coalesce(CAST(sum(unfinished_tasks) AS BIGINT), 0)", "apps"),
        ("UPDATE app SET stored_bytes = stored_bytes - (SELECT", "apps, once after the master key was lost"),
        ("SELECT coalesce(CAST(sum(queued) AS BIGINT), 0) FROM (SELECT queued FROM lane", counted),
        ("SELECT count(*) FROM (SELECT 1 FROM live", counted), ("SELECT count(*) FROM (SELECT 1 FROM launch", counted),
        ("SELECT count(*) FROM (SELECT 1 FROM app", counted),
        ("SELECT min(t.created_at) FROM (SELECT id FROM lane WHERE queued > 0 LIMIT 512)", "512 lanes, a task of each"),
        ("DELETE FROM idempotency WHERE substr(answer, 1, 1)", lostKey),
        ("UPDATE question SET answer_document = NULL", lostKey),
        ("DELETE FROM question WHERE substr(question_document, 1, 1)", lostKey),
        ("SELECT id, client_task_id, group_name FROM task WHERE substr(specification_document, 1, 1)", lostKey),
        ("SELECT id FROM session WHERE substr(configuration_document, 1, 1)", lostKey),
        ("SELECT id FROM app", lostKey),
        ("SELECT id, replaced_at FROM set_version WHERE file_set = ?1", "the published versions of one set"),
    ]

    private static let leftBehind = "an index of tasks that dead nodes have left, once at start"
    private static let counted = "an index of those alone, as many as are asked for"
    private static let lostKey = "once, when an operator gives up what the master key sealed"

    @Test func `No statement scans or sorts unless it is listed with its bound`() async throws {
        let fixture = try await StoreFixture()
        let statements = try StoreStatement.all().filter { !$0.isOfServer }
        #expect(statements.count > 150)
        var handle: OpaquePointer?
        try #require(sqlite3_open_v2(fixture.folder.file("test.db"), &handle, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        var unused = Set(Self.reasoned.map(\.beginning))
        var idle = Set(try Self.indexes(handle))
        for statement in statements where !statement.sql.hasPrefix("PRAGMA") {
            let plan = try Self.plan(of: statement.sql, handle)
            for step in plan { idle.subtract(step.split(separator: " ").map(String.init)) }
            let faults = plan.filter { step in
                step.hasPrefix("SCAN") && step != "SCAN CONSTANT ROW" || step.contains("TEMP B-TREE")
            }
            if faults.isEmpty { continue }
            let reason = Self.reasoned.first { statement.words.hasPrefix($0.beginning) }
            #expect(
                reason != nil,
                "\(statement.file):\(statement.line): \(statement.words)\n\(faults.joined(separator: "\n"))")
            if let reason { unused.remove(reason.beginning) }
        }
        #expect(unused.isEmpty, "listed, but nothing to be listed for")
        #expect(idle.isEmpty, "indexes that no statement uses")
    }

    @Test func `A statement that scans is detected`() async throws {
        let fixture = try await StoreFixture()
        var handle: OpaquePointer?
        try #require(sqlite3_open_v2(fixture.folder.file("test.db"), &handle, SQLITE_OPEN_READONLY, nil) == SQLITE_OK)
        defer { sqlite3_close(handle) }
        #expect(try Self.plan(of: "SELECT id FROM task WHERE outcome = ?1 ORDER BY priority", handle).count == 2)
    }

    private static func plan(of sql: String, _ handle: OpaquePointer?) throws -> [String] {
        try texts("EXPLAIN QUERY PLAN " + sql, column: 3, handle)
    }

    /// The indexes for statements, without those of unique keys.
    private static func indexes(_ handle: OpaquePointer?) throws -> [String] {
        try texts("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL", column: 0, handle)
    }

    private static func texts(_ sql: String, column: Int32, _ handle: OpaquePointer?) throws -> [String] {
        var statement: OpaquePointer?
        let code = sqlite3_prepare_v2(handle, sql, -1, &statement, nil)
        try #require(code == SQLITE_OK, "\(sql): \(handle.map { String(cString: sqlite3_errmsg($0)) } ?? "")")
        defer { sqlite3_finalize(statement) }
        var texts: [String] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            if let text = sqlite3_column_text(statement, column) { texts.append(String(cString: text)) }
        }
        return texts
    }
}
