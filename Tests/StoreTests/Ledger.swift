import SQL
import Store

/// Recomputes every counter from its rows.
///
/// It reads tables directly: only this part of the tests depends on them.
struct Ledger {
    /// The inconsistencies in words; empty if there are none.
    static func faults(of store: Store) async throws -> [String] {
        try await store.database.read { db in
            try sessions(db) + lanes(db) + apps(db) + bodies(db) + clocks(db) + events(db) + caches(db) + sets(db)
        }
    }

    private static func sessions(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT s.id, s.suspended, s.running, s.succeeded, s.http_error, s.failed, s.cancelled, s.not_modified, \
            s.next_task, \
            (SELECT count(*) FROM live WHERE session = s.id AND stage = 'suspended'), \
            (SELECT count(*) FROM live WHERE session = s.id AND stage <> 'suspended'), \
            (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'succeeded'), \
            (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'httpError'), \
            (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'failed'), \
            (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'cancelled'), \
            (SELECT count(*) FROM task WHERE session = s.id AND outcome = 'notModified'), \
            (SELECT count(*) + 1 FROM task WHERE session = s.id), \
            (SELECT count(*) FROM task t WHERE session = s.id AND state <> 'completed' AND NOT EXISTS \
              (SELECT 1 FROM live l WHERE l.task = t.id AND (l.stage = 'suspended') = (t.state = 'suspended'))), \
            (SELECT count(*) FROM live l JOIN task t ON t.id = l.task WHERE l.session = s.id AND t.state = 'completed'), \
            (SELECT count(*) FROM task t WHERE t.session = s.id AND t.app <> s.app) \
            FROM session s WHERE s.forgotten = 0
            """
        ) { row in
            let names = [
                "suspended", "running", "succeeded", "httpError", "failed", "cancelled", "notModified", "nextTask",
            ]
            var faults = names.indices.compactMap { index -> String? in
                let (kept, counted) = (row.integer(.position(index + 1)), row.integer(.position(index + 9)))
                return kept == counted ? nil : "session \(row.integer(0)) \(names[index]): \(kept), counted \(counted)"
            }
            if row.integer(17) > 0 { faults.append("session \(row.integer(0)): tasks without a fitting live row") }
            if row.integer(18) > 0 { faults.append("session \(row.integer(0)): completed tasks with a live row") }
            if row.integer(19) > 0 { faults.append("session \(row.integer(0)): tasks of another app") }
            return faults
        }.flatMap(\.self)
    }

    private static func lanes(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT * FROM (SELECT l.id, l.queued, \
            (SELECT count(*) FROM live WHERE lane = l.id AND stage = 'queued') AS counted \
            FROM lane l JOIN session s ON s.id = l.session WHERE s.forgotten = 0) AS lanes WHERE queued <> counted
            """
        ) { "lane \($0.integer(0)) queued: \($0.integer(1)), counted \($0.integer(2))" }
    }

    private static func apps(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT * FROM (SELECT a.id, a.unfinished_tasks, (SELECT count(*) FROM live l \
            JOIN session s ON s.id = l.session WHERE l.app = a.id AND s.forgotten = 0) AS counted FROM app a) AS apps \
            WHERE unfinished_tasks <> counted
            """
        ) { "app \($0.integer(0)) unfinished: \($0.integer(1)), counted \($0.integer(2))" }
            + db.all(
                """
                SELECT * FROM (SELECT a.id, a.stored_bytes, \
                CAST((SELECT coalesce(sum(length), 0) FROM body WHERE app = a.id) \
                + (SELECT coalesce(sum(length), 0) FROM resume_data WHERE app = a.id AND spent = 0) \
                + (SELECT coalesce(sum(length), 0) FROM set_file WHERE app = a.id AND state = 'kept') \
                + (SELECT coalesce(sum(c.length), 0) FROM content c JOIN session s ON s.id = c.session \
                WHERE s.app = a.id AND c.expired = 0) AS BIGINT) AS counted FROM app a) AS apps \
                WHERE stored_bytes <> counted
                """
            ) { "app \($0.integer(0)) stored bytes: \($0.integer(1)), counted \($0.integer(2))" }
    }

    private static func bodies(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT * FROM (SELECT b.id, b.uses, (SELECT count(*) FROM live WHERE body = b.id) AS counted \
            FROM body b) AS bodies WHERE uses <> counted
            """
        ) { "body \($0.integer(0)) uses: \($0.integer(1)), counted \($0.integer(2))" }
            + db.all("SELECT task FROM live WHERE body IS NOT NULL AND body NOT IN (SELECT id FROM body)") {
                "task \($0.integer(0)) has lost its body"
            }
    }

    private static func sets(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT * FROM (SELECT v.id, v.files, v.open_files, v.fetched_files + v.reused_files AS kept, v.failed_files, \
            v.fetched_bytes + v.reused_bytes AS bytes, \
            (SELECT count(*) FROM set_file WHERE version = v.id) AS all_files, \
            (SELECT count(*) FROM set_file WHERE version = v.id AND state IN ('listed', 'fetching')) AS still_open, \
            (SELECT count(*) FROM set_file WHERE version = v.id AND state = 'kept') AS have, \
            (SELECT count(*) FROM set_file WHERE version = v.id AND state = 'failed') AS failed, \
            CAST((SELECT coalesce(sum(length), 0) FROM set_file WHERE version = v.id AND state = 'kept') AS BIGINT) \
            AS sum FROM set_version v) AS versions \
            WHERE files <> all_files OR open_files <> still_open OR kept <> have OR failed_files <> failed OR bytes <> sum
            """
        ) { row in "version \(row.integer(0)): \((1...10).map { row.integer(.position($0)) })" }
            + db.all(
                """
                SELECT * FROM (SELECT s.id, s.versions_in_flight, (SELECT count(*) FROM set_version \
                WHERE session = s.id AND name IS NOT NULL AND state IN \
                ('expanding', 'fetching', 'verifying', 'publishing')) AS counted \
                FROM session s WHERE s.forgotten = 0) AS sessions WHERE versions_in_flight <> counted
                """
            ) { "session \($0.integer(0)): \($0.integer(1)) versions in flight, counted \($0.integer(2))" }
    }

    /// Entries, their weight, and the bytes that several rows of an app refer to.
    private static func caches(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT * FROM (SELECT a.id, coalesce(k.entries, 0) AS entries, coalesce(k.bytes, 0) AS bytes, \
            coalesce(k.shared_bytes, 0) AS shared_bytes, (SELECT count(*) FROM cached WHERE app = a.id AND selector IS NOT NULL) AS counted, \
            CAST((SELECT coalesce(sum(length + ?1), 0) FROM cached WHERE app = a.id AND selector IS NOT NULL) AS BIGINT) AS weighed, \
            CAST((SELECT coalesce(sum(length), 0) FROM (SELECT length * (count(*) - 1) AS length \
            FROM (SELECT coalesce(file, object) AS place, length FROM content WHERE app = a.id UNION ALL \
            SELECT coalesce(file, object) AS place, length FROM cached WHERE app = a.id UNION ALL \
            SELECT coalesce(file, object) AS place, length FROM set_file WHERE app = a.id) AS places \
            WHERE place IS NOT NULL GROUP BY place, length) AS shared) AS BIGINT) AS shared \
            FROM app a LEFT JOIN cache k ON k.app = a.id) AS caches \
            WHERE entries <> counted OR bytes <> weighed OR shared_bytes <> shared
            """, Store.Cache.weightOfEntry
        ) { row in "cache of app \(row.integer(0)): \((1...6).map { row.integer(.position($0)) })" }
            + db.all(
                """
                SELECT f.id FROM flight f WHERE leader IS NULL \
                AND NOT EXISTS (SELECT 1 FROM live WHERE flight = f.id) \
                OR leader IS NOT NULL AND EXISTS (SELECT 1 FROM live WHERE task = f.leader) \
                AND NOT EXISTS (SELECT 1 FROM live WHERE task = f.leader AND flight = f.id)
                """
            ) { "flight \($0.integer(0)) without tasks" }
            + db.all(
                """
                SELECT task FROM live l JOIN session s ON s.id = l.session WHERE s.forgotten = 0 AND stage = 'following' \
                AND NOT EXISTS (SELECT 1 FROM flight WHERE id = l.flight AND (leader IS NOT NULL OR releasing = 1))
                """
            ) { "task \($0.integer(0)) follows nothing" }
    }

    /// Due dates exist exactly in waiting stages; deadlines for every task except suspended ones.
    private static func clocks(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT task, stage FROM live l JOIN session s ON s.id = l.session WHERE s.forgotten = 0 \
            AND ((due_at IS NULL) <> (stage NOT IN ('delayed', 'retryWait', 'waitingForConnectivity')) \
            OR (resource_deadline IS NULL) <> (stage = 'suspended') \
            OR (resource_remaining IS NULL) <> (stage <> 'suspended'))
            """
        ) { "task \($0.integer(0)) of stage \($0.text(1)): clocks" }
            + db.all(
                """
                SELECT task, stage FROM live l JOIN session s ON s.id = l.session WHERE s.forgotten = 0 \
                AND (stage = 'awaitingAnswer' AND question IS NULL \
                OR stage NOT IN ('suspended', 'awaitingAnswer') AND question IS NOT NULL \
                OR NOT EXISTS (SELECT 1 FROM question q WHERE q.id = l.question AND (q.state = 'open' OR q.releasing = 1)) \
                AND question IS NOT NULL)
                """
            ) { "task \($0.integer(0)) of stage \($0.text(1)): its question" }
            + db.all(
                """
                SELECT q.id, q.task FROM question q JOIN session s ON s.id = q.session WHERE s.forgotten = 0 \
                AND q.state = 'open' AND (q.releasing = 1 \
                OR NOT EXISTS (SELECT 1 FROM live WHERE task = q.task AND question = q.id))
                """
            ) { "question \($0.integer(0)): its task \($0.integer(1)) does not wait for it" }
    }

    /// G1: gap-free from the first kept event; G3 to G5: the last events of a task.
    private static func events(_ db: Connection) throws -> [String] {
        try db.all(
            """
            SELECT s.id FROM session s WHERE s.forgotten = 0 AND s.last_seq - s.dropped_seq <> \
            (SELECT count(*) FROM event WHERE session = s.id AND seq > s.dropped_seq AND seq <= s.last_seq)
            """
        ) { "session \($0.integer(0)): a gap in its events" }
            + db.all(
                """
                SELECT e.session, e.task FROM event e JOIN session s ON s.id = e.session WHERE s.forgotten = 0 \
                AND e.task IS NOT NULL AND e.seq > (SELECT min(seq) FROM event d WHERE d.session = e.session \
                AND d.task = e.task AND d.kind = 'task.didComplete')
                """
            ) { "session \($0.integer(0)): something follows didComplete of \($0.integer(1))" }
            + db.all(
                """
                SELECT e.session, e.seq FROM event e JOIN session s ON s.id = e.session \
                WHERE e.kind = 'session.didBecomeInvalid' AND e.seq <> s.last_seq
                """
            ) { "session \($0.integer(0)): didBecomeInvalid is not the last event" }
            + db.all(
                """
                SELECT t.id FROM task t JOIN session s ON s.id = t.session WHERE s.forgotten = 0 AND t.state = 'completed' \
                AND s.dropped_seq = 0 AND (SELECT count(*) FROM event e WHERE e.task = t.id AND e.kind = 'task.didComplete') <> 1
                """
            ) { "task \($0.integer(0)): not exactly one didComplete" }
    }
}
