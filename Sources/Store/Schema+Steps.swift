/// What came after the first version of the tables, step by step.
extension Schema {
    /// Contents count as stored bytes of their app, as bodies do.
    static let version2: StaticString = """
        UPDATE app SET stored_bytes = stored_bytes + (SELECT ifnull(sum(c.length), 0) FROM content c \
        JOIN session s ON s.id = c.session WHERE s.app = app.id AND c.expired = 0);
        """

    /// Moves to destinations are planned before they are made.
    static let version3: StaticString = """
        ALTER TABLE live ADD COLUMN move_document BLOB;
        CREATE INDEX live_move ON live (task) WHERE move_document IS NOT NULL;
        """

    /// What a task that waits for the disk needs and keeps, in bytes, and when it may be tried again.
    static let version4: StaticString = """
        ALTER TABLE live ADD COLUMN disk_needed INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE live ADD COLUMN disk_kept INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE live ADD COLUMN disk_not_before INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX live_disk ON live (disk_needed) WHERE stage = 8;
        CREATE INDEX live_disk_kept ON live (disk_needed) WHERE stage = 8 AND disk_kept > 0;
        """

    /// What cleaning and listing need so as to touch no more rows than they answer or remove.
    ///
    /// An acknowledgement starts three clocks, of contents, events and tasks, and remembers which have run down. A lane's
    /// id is never given again: a transfer that is being stopped may still be counted under it.
    static let version5: StaticString = """
        CREATE TABLE acknowledgement_5 (
            session INTEGER NOT NULL,
            through INTEGER NOT NULL,
            at INTEGER NOT NULL,
            contents_expired INTEGER NOT NULL DEFAULT 0,
            events_dropped INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (session, through)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO acknowledgement_5 (session, through, at, events_dropped)
            SELECT session, through, abs(at), at < 0 FROM acknowledgement;
        DROP TABLE acknowledgement;
        ALTER TABLE acknowledgement_5 RENAME TO acknowledgement;
        CREATE INDEX acknowledgement_contents ON acknowledgement (at) WHERE contents_expired = 0;
        CREATE INDEX acknowledgement_events ON acknowledgement (at) WHERE events_dropped = 0;
        CREATE INDEX acknowledgement_tasks ON acknowledgement (at) WHERE contents_expired = 1 AND events_dropped = 1;
        DROP INDEX content_seq;
        CREATE INDEX content_kept ON content (session, seq) WHERE expired = 0;
        DROP INDEX content_expiry;
        CREATE INDEX content_expiry ON content (expires_at) WHERE expired = 0 AND expires_at IS NOT NULL;

        CREATE TABLE lane_5 (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            origin TEXT NOT NULL,
            limit_per_host INTEGER NOT NULL,
            background INTEGER NOT NULL,
            conditions INTEGER NOT NULL,
            queued INTEGER NOT NULL DEFAULT 0,
            UNIQUE (session, origin)
        ) STRICT;
        INSERT INTO lane_5 SELECT id, app, session, origin, limit_per_host, background, conditions, queued FROM lane;
        DROP TABLE lane;
        ALTER TABLE lane_5 RENAME TO lane;
        CREATE INDEX lane_queued ON lane (id) WHERE queued > 0;
        CREATE INDEX lane_session ON lane (session) WHERE queued > 0;
        CREATE INDEX live_lane ON live (lane);
        DROP INDEX live_active;
        CREATE INDEX live_active ON live (session) WHERE stage = 3;

        CREATE TABLE deleted_app (
            app INTEGER PRIMARY KEY
        ) STRICT;
        ALTER TABLE session ADD COLUMN discretionary INTEGER NOT NULL DEFAULT 0;
        UPDATE session SET discretionary = 1 WHERE id IN (SELECT session FROM lane WHERE conditions & 1);
        CREATE INDEX session_app ON session (app, forgotten);
        CREATE INDEX session_discretionary ON session (app) WHERE discretionary = 1 AND forgotten = 0;
        ALTER TABLE incarnation ADD COLUMN forgotten_at INTEGER;
        CREATE INDEX incarnation_forgotten ON incarnation (forgotten_at) WHERE forgotten_at IS NOT NULL;

        DROP INDEX api_key_app;
        CREATE INDEX api_key_app ON api_key (app, created_at, key_identifier);
        CREATE INDEX api_key_expiry ON api_key (expires_at) WHERE expires_at IS NOT NULL;
        CREATE INDEX credential_app ON credential (app);
        CREATE INDEX credential_session ON credential (session) WHERE session IS NOT NULL;
        CREATE INDEX question_app_state ON question (app, state);
        CREATE INDEX question_session ON question (session);
        CREATE INDEX launch_fetch ON launch (created_at) WHERE kind = 1 AND state = 0 AND attempts = 0;
        """

    /// Launches queue by app; completions tell how many there were up to them.
    static let version6: StaticString = """
        ALTER TABLE app ADD COLUMN next_launch_at INTEGER;
        ALTER TABLE app ADD COLUMN launch_turn INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE app ADD COLUMN settled_launch INTEGER;
        ALTER TABLE app ADD COLUMN next_release_at INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX app_next_launch ON app (next_launch_at, launch_turn) WHERE next_launch_at IS NOT NULL;
        CREATE INDEX app_unsettled ON app (settled_launch) WHERE settled_launch IS NOT NULL;
        ALTER TABLE launch ADD COLUMN redelivered INTEGER NOT NULL DEFAULT 0;
        DROP INDEX launch_parked;
        DROP INDEX launch_queue;
        CREATE INDEX launch_queue ON launch \
            (app, CASE WHEN redelivered THEN 0 WHEN attempts = 0 THEN 1 ELSE 2 END, due_at) WHERE state = 0;
        UPDATE app SET next_launch_at = (SELECT min(due_at) FROM launch WHERE launch.app = app.id AND state = 0);

        UPDATE event SET data = CAST(told.counts AS BLOB) FROM (
            SELECT e.session, e.seq, (s.succeeded - ifnull(sum(t.outcome = 0) OVER later, 0)) || ',' ||
            (s.http_error - ifnull(sum(t.outcome = 1) OVER later, 0)) || ',' ||
            (s.failed - ifnull(sum(t.outcome = 2) OVER later, 0)) || ',' ||
            (s.cancelled - ifnull(sum(t.outcome = 3) OVER later, 0)) || ',' ||
            (s.not_modified - ifnull(sum(t.outcome = 4) OVER later, 0)) AS counts
            FROM event e JOIN task t ON t.id = e.task JOIN session s ON s.id = e.session WHERE e.kind = 6
            WINDOW later AS (
                PARTITION BY e.session ORDER BY e.seq DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        ) AS told WHERE event.session = told.session AND event.seq = told.seq;
        """

    /// Crashes count against the tasks that were under way; lanes are found by app.
    static let version7: StaticString = """
        ALTER TABLE live ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX live_crashes ON live (task) WHERE crashes > 0;
        CREATE INDEX live_quarantined ON live (task) WHERE stage = 7;
        ALTER TABLE lane ADD COLUMN served_at INTEGER NOT NULL DEFAULT 0;
        DROP INDEX lane_queued;
        CREATE INDEX lane_queued ON lane (app, origin, served_at, id) WHERE queued > 0;
        """

    /// Which tasks have been retried.
    static let version8: StaticString = """
        ALTER TABLE task ADD COLUMN retried INTEGER NOT NULL DEFAULT 0;
        """

    /// Tasks of a session that meet one protection space wait for one question: `live.question` says for which, and
    /// `space` (a digest) finds it. How many wait is counted while it is open, and kept in `task_count` when it is over.
    /// `releasing`: it is over, and not all who waited for it go on yet.
    static let version9: StaticString = """
        ALTER TABLE question ADD COLUMN space TEXT;
        ALTER TABLE question ADD COLUMN task_count INTEGER NOT NULL DEFAULT 1;
        ALTER TABLE question ADD COLUMN releasing INTEGER NOT NULL DEFAULT 0;
        CREATE UNIQUE INDEX question_space ON question (session, space) WHERE state = 0 AND space IS NOT NULL;
        CREATE INDEX question_releasing ON question (id) WHERE releasing = 1;
        ALTER TABLE live ADD COLUMN question INTEGER;
        CREATE INDEX live_question ON live (question, number) WHERE question IS NOT NULL;
        UPDATE live SET question = (SELECT q.id FROM question q WHERE q.task = live.task AND q.state = 0);
        """
}
