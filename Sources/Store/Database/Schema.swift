import SQL

/// The tables, as migrations that are applied once and in order. This file has the first, `Schema+Later` the others.
///
/// Documents (`…_document` columns) are Core values as JSON text, or sealed whole when they hold a secret. Times are
/// milliseconds since 1970. A finished task has a row in `task` only. An unfinished task has a row in `live` too, so
/// that the scheduler and recovery read only the rows that they need.
///
/// States are the raw values of Core's enums, and the checks list them: not with `IN`, for which SQLite builds a table
/// in each statement. No foreign key is declared: a parent is deleted first, so that no reader finds its children, and
/// the janitor deletes the children a few rows at a time.
enum Schema {
    static let migrations = [
        Migration(version: 10, sql: version10, onServer: server10), Migration(version: 11, sql: version11),
        Migration(version: 12, sql: version12), Migration(version: 13, sql: version13),
        Migration(version: 14, sql: version14), Migration(version: 15, sql: version15),
        Migration(version: 16, sql: version16), Migration(version: 17, sql: version17),
        Migration(version: 18, sql: version18), Migration(version: 19, sql: version19),
        Migration(version: 20, sql: version20), Migration(version: 21, sql: version21),
        Migration(version: 22, sql: version22), Migration(version: 23, sql: version23),
    ]

    private static let version10: StaticString = """
        CREATE TABLE app (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            identifier TEXT NOT NULL UNIQUE,
            webhook_document BLOB NOT NULL,
            refresh_status TEXT NOT NULL CHECK (
                refresh_status = 'available' OR refresh_status = 'denied' OR refresh_status = 'restricted'),
            force_quit INTEGER NOT NULL DEFAULT 0,
            limits_document BLOB NOT NULL,
            unfinished_tasks INTEGER NOT NULL DEFAULT 0,
            stored_bytes INTEGER NOT NULL DEFAULT 0,
            next_launch_at INTEGER,
            launch_turn INTEGER NOT NULL DEFAULT 0,
            settled_launch INTEGER,
            next_release_at INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE INDEX app_next_launch ON app (next_launch_at, launch_turn) WHERE next_launch_at IS NOT NULL;
        CREATE INDEX app_unsettled ON app (settled_launch) WHERE settled_launch IS NOT NULL;

        CREATE TABLE deleted_app (
            app INTEGER PRIMARY KEY
        ) STRICT;

        CREATE TABLE api_key (
            key_identifier TEXT PRIMARY KEY,
            app INTEGER NOT NULL,
            hash BLOB NOT NULL,
            scopes TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX api_key_app ON api_key (app, created_at, key_identifier);
        CREATE INDEX api_key_expiry ON api_key (expires_at) WHERE expires_at IS NOT NULL;

        CREATE TABLE webhook_secret (
            id INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            secret BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER
        ) STRICT;
        CREATE INDEX webhook_secret_app ON webhook_secret (app);

        CREATE TABLE webhook_health (
            app INTEGER PRIMARY KEY,
            failing_since INTEGER,
            consecutive_failures INTEGER NOT NULL DEFAULT 0,
            trips INTEGER NOT NULL DEFAULT 0,
            open_until INTEGER
        ) STRICT;

        CREATE TABLE session (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            identifier TEXT NOT NULL,
            incarnation INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state = 'active' OR state = 'invalidating' OR state = 'invalid'),
            forgotten INTEGER NOT NULL DEFAULT 0,
            configuration_document BLOB NOT NULL,
            sends_launches INTEGER NOT NULL,
            discretionary INTEGER NOT NULL DEFAULT 0,
            resource_timeout INTEGER NOT NULL,
            description TEXT,
            next_task INTEGER NOT NULL DEFAULT 1,
            last_seq INTEGER NOT NULL DEFAULT 0,
            acknowledged_seq INTEGER NOT NULL DEFAULT 0,
            dropped_seq INTEGER NOT NULL DEFAULT 0,
            last_completion_seq INTEGER NOT NULL DEFAULT 0,
            exhausted_seq INTEGER NOT NULL DEFAULT 0,
            open_launch INTEGER,
            idle_completions INTEGER NOT NULL DEFAULT 0,
            launch_not_before INTEGER NOT NULL DEFAULT 0,
            attachment_document BLOB,
            suspended INTEGER NOT NULL DEFAULT 0,
            running INTEGER NOT NULL DEFAULT 0,
            succeeded INTEGER NOT NULL DEFAULT 0,
            http_error INTEGER NOT NULL DEFAULT 0,
            failed INTEGER NOT NULL DEFAULT 0,
            cancelled INTEGER NOT NULL DEFAULT 0,
            not_modified INTEGER NOT NULL DEFAULT 0,
            bytes_received INTEGER NOT NULL DEFAULT 0,
            bytes_sent INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            invalid_at INTEGER,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE UNIQUE INDEX session_identifier ON session (app, identifier) WHERE forgotten = 0;
        CREATE INDEX session_app ON session (app, forgotten);
        CREATE INDEX session_forgotten ON session (id) WHERE forgotten = 1;
        CREATE INDEX session_cause ON session (id) WHERE forgotten = 0 AND last_seq > acknowledged_seq;
        CREATE INDEX session_invalid ON session (invalid_at) WHERE state = 'invalid' AND forgotten = 0;
        CREATE INDEX session_discretionary ON session (app, discretionary, forgotten);

        CREATE TABLE incarnation (
            app INTEGER NOT NULL,
            identifier TEXT NOT NULL,
            last INTEGER NOT NULL,
            forgotten_at INTEGER,
            PRIMARY KEY (app, identifier)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX incarnation_forgotten ON incarnation (forgotten_at) WHERE forgotten_at IS NOT NULL;

        CREATE TABLE task (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL,
            number INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (
                state = 'suspended' OR state = 'running' OR state = 'canceling' OR state = 'completed'),
            outcome TEXT CHECK (
                outcome = 'succeeded' OR outcome = 'httpError' OR outcome = 'failed' OR outcome = 'cancelled' OR
                outcome = 'notModified'),
            client_task_id TEXT,
            fingerprint BLOB,
            group_name TEXT,
            priority REAL NOT NULL,
            specification_document BLOB NOT NULL,
            result_document BLOB,
            -- Whether a new task was made of it.
            retried INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            completed_at INTEGER,
            completed_seq INTEGER,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE UNIQUE INDEX task_number ON task (session, number);
        CREATE UNIQUE INDEX task_client ON task (session, client_task_id) WHERE client_task_id IS NOT NULL;
        CREATE INDEX task_group ON task (session, group_name, number) WHERE group_name IS NOT NULL;
        CREATE INDEX task_outcome ON task (session, outcome, number) WHERE outcome <> 'succeeded';
        CREATE INDEX task_completed ON task (session, completed_seq) WHERE completed_seq IS NOT NULL;

        CREATE TABLE live (
            task INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            lane INTEGER NOT NULL,
            number INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (kind = 'download' OR kind = 'upload'),
            stage TEXT NOT NULL CHECK (
                stage = 'suspended' OR stage = 'delayed' OR stage = 'queued' OR stage = 'active' OR
                stage = 'retryWait' OR stage = 'waitingForConnectivity' OR stage = 'awaitingAnswer' OR
                stage = 'quarantined' OR stage = 'waitingForDisk'),
            priority REAL NOT NULL,
            due_at INTEGER,
            begins_at INTEGER,
            resource_deadline INTEGER,
            resource_remaining INTEGER,
            body INTEGER,
            progress_document BLOB,
            -- A move to a destination is planned before it is made.
            move_document BLOB,
            -- What a task that waits for the disk needs and keeps, in bytes, and when it may be tried again.
            disk_needed INTEGER NOT NULL DEFAULT 0,
            disk_kept INTEGER NOT NULL DEFAULT 0,
            disk_not_before INTEGER NOT NULL DEFAULT 0,
            -- Of the service, in a row, that found it under way.
            crashes INTEGER NOT NULL DEFAULT 0,
            question INTEGER
        ) STRICT;
        CREATE INDEX live_queue ON live (lane, priority DESC, number) WHERE stage = 'queued';
        CREATE INDEX live_active ON live (session) WHERE stage = 'active';
        CREATE INDEX live_quarantined ON live (task) WHERE stage = 'quarantined';
        CREATE INDEX live_disk ON live (disk_needed) WHERE stage = 'waitingForDisk';
        CREATE INDEX live_disk_kept ON live (disk_needed) WHERE stage = 'waitingForDisk' AND disk_kept > 0;
        CREATE INDEX live_due ON live (due_at) WHERE due_at IS NOT NULL;
        CREATE INDEX live_deadline ON live (resource_deadline) WHERE resource_deadline IS NOT NULL;
        CREATE INDEX live_session ON live (session, number);
        CREATE INDEX live_lane ON live (lane);
        CREATE INDEX live_move ON live (task) WHERE move_document IS NOT NULL;
        CREATE INDEX live_crashes ON live (task) WHERE crashes > 0;
        CREATE INDEX live_question ON live (question, number) WHERE question IS NOT NULL;

        -- An id is never given again: a transfer that is being stopped may still be counted under it.
        CREATE TABLE lane (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            origin TEXT NOT NULL,
            limit_per_host INTEGER NOT NULL,
            background INTEGER NOT NULL,
            -- A set of flags, `LaneConditions`.
            conditions INTEGER NOT NULL,
            queued INTEGER NOT NULL DEFAULT 0,
            served_at INTEGER NOT NULL DEFAULT 0,
            UNIQUE (session, origin)
        ) STRICT;
        CREATE INDEX lane_queued ON lane (app, origin, served_at, id) WHERE queued > 0;
        CREATE INDEX lane_session ON lane (session) WHERE queued > 0;

        CREATE TABLE event (
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (
                kind = 'task.willBeginDelayedRequest' OR kind = 'task.didReceiveChallenge' OR
                kind = 'task.didResumeAtOffset' OR kind = 'task.didFinishDownloading' OR
                kind = 'task.didFinishCollectingMetrics' OR kind = 'task.didComplete' OR
                kind = 'session.didFinishEvents' OR kind = 'session.didBecomeInvalid'),
            task INTEGER,
            occurred_at INTEGER NOT NULL,
            data BLOB,
            PRIMARY KEY (session, seq)
        ) STRICT, WITHOUT ROWID;

        -- Starts three clocks, of contents, events and tasks, and remembers which have run down.
        CREATE TABLE acknowledgement (
            session INTEGER NOT NULL,
            through INTEGER NOT NULL,
            at INTEGER NOT NULL,
            contents_expired INTEGER NOT NULL DEFAULT 0,
            events_dropped INTEGER NOT NULL DEFAULT 0,
            PRIMARY KEY (session, through)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX acknowledgement_contents ON acknowledgement (at) WHERE contents_expired = 0;
        CREATE INDEX acknowledgement_events ON acknowledgement (at) WHERE events_dropped = 0;
        CREATE INDEX acknowledgement_tasks ON acknowledgement (at) WHERE contents_expired = 1 AND events_dropped = 1;

        CREATE TABLE content (
            task INTEGER PRIMARY KEY,
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            length INTEGER NOT NULL,
            algorithm TEXT NOT NULL CHECK (algorithm = 'sha-256' OR algorithm = 'sha-512' OR algorithm = 'md5'),
            digest TEXT NOT NULL,
            bytes BLOB,
            file TEXT,
            expires_at INTEGER,
            expired INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX content_kept ON content (session, seq) WHERE expired = 0;
        CREATE INDEX content_expiry ON content (expires_at) WHERE expired = 0 AND expires_at IS NOT NULL;
        CREATE INDEX content_file ON content (file) WHERE file IS NOT NULL;

        CREATE TABLE body (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            complete INTEGER NOT NULL,
            length INTEGER NOT NULL,
            expected_length INTEGER,
            digest TEXT,
            media_type TEXT,
            bytes BLOB,
            file TEXT,
            uses INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            expires_at INTEGER
        ) STRICT;
        CREATE INDEX body_expiry ON body (expires_at) WHERE expires_at IS NOT NULL;
        CREATE INDEX body_app ON body (app);
        CREATE INDEX body_file ON body (file) WHERE file IS NOT NULL;

        CREATE TABLE launch (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            session INTEGER,
            session_identifier TEXT,
            kind TEXT NOT NULL CHECK (
                kind = 'session.handleEvents' OR kind = 'app.performFetch' OR
                kind = 'app.backgroundRefreshStatusDidChange' OR kind = 'webhook.ping'),
            state TEXT NOT NULL CHECK (
                state = 'pending' OR state = 'delivering' OR state = 'launched' OR state = 'parked' OR
                state = 'completed' OR state = 'superseded' OR state = 'exhausted'),
            state_document BLOB NOT NULL,
            urgency TEXT NOT NULL DEFAULT 'firstAttempt' CHECK (
                urgency = 'redelivered' OR urgency = 'firstAttempt' OR urgency = 'retry'),
            -- A set of flags, `LaunchRule.Reasons`.
            reasons INTEGER NOT NULL DEFAULT 0,
            last_seq INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER,
            body BLOB,
            traceparent TEXT,
            created_at INTEGER NOT NULL,
            expires_at INTEGER,
            ended_at INTEGER,
            result TEXT CHECK (result = 'newData' OR result = 'noData' OR result = 'failed')
        ) STRICT;
        CREATE INDEX launch_due ON launch (state, due_at, app) WHERE due_at IS NOT NULL;
        CREATE INDEX launch_queue ON launch (app, urgency, due_at) WHERE state = 'pending';
        CREATE INDEX launch_fetch ON launch (created_at) \
            WHERE kind = 'app.performFetch' AND state = 'pending' AND attempts = 0;
        CREATE INDEX launch_open ON launch (app, ended_at, id);
        CREATE INDEX launch_ended ON launch (ended_at) WHERE ended_at IS NOT NULL;
        CREATE INDEX launch_app ON launch (app, id);

        CREATE TABLE launch_attempt (
            launch INTEGER NOT NULL,
            number INTEGER NOT NULL,
            started_at INTEGER NOT NULL,
            duration INTEGER NOT NULL,
            status INTEGER,
            error TEXT,
            excerpt TEXT,
            PRIMARY KEY (launch, number)
        ) STRICT, WITHOUT ROWID;

        -- Tasks of a session that meet one protection space wait for one question: `live.question` says for which, and
        -- `space` (a digest) finds it. How many wait is counted while it is open, and kept when it is over. `releasing`:
        -- it is over, and not all who waited for it go on yet.
        CREATE TABLE question (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            task INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            state TEXT NOT NULL CHECK (state = 'open' OR state = 'answered' OR state = 'expired'),
            space TEXT,
            question_document BLOB NOT NULL,
            answer_document BLOB,
            disposition TEXT CHECK (
                disposition = 'useCredential' OR disposition = 'performDefaultHandling' OR
                disposition = 'cancelAuthenticationChallenge' OR disposition = 'rejectProtectionSpace' OR
                disposition = 'continueLoading' OR disposition = 'useNewRequest' OR disposition = 'cancel'),
            task_count INTEGER NOT NULL DEFAULT 1,
            releasing INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            deadline INTEGER NOT NULL,
            answered_at INTEGER
        ) STRICT;
        CREATE INDEX question_open ON question (session, state, seq);
        CREATE UNIQUE INDEX question_space ON question (session, space) WHERE state = 'open' AND space IS NOT NULL;
        CREATE INDEX question_deadline ON question (deadline) WHERE state = 'open';
        CREATE INDEX question_releasing ON question (id) WHERE releasing = 1;
        CREATE INDEX question_app ON question (app, id);
        CREATE INDEX question_app_state ON question (app, state);
        CREATE INDEX question_session ON question (session);
        CREATE INDEX question_task ON question (task);

        CREATE TABLE credential (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            session INTEGER,
            space TEXT NOT NULL,
            space_document BLOB NOT NULL,
            secret BLOB NOT NULL,
            created_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX credential_app ON credential (app);
        CREATE INDEX credential_session ON credential (session) WHERE session IS NOT NULL;
        CREATE UNIQUE INDEX credential_space ON credential (app, coalesce(session, 0), space);

        CREATE TABLE cookie_jar (
            session INTEGER PRIMARY KEY,
            jar BLOB NOT NULL
        ) STRICT;

        CREATE TABLE refresh (
            app INTEGER PRIMARY KEY,
            document BLOB NOT NULL,
            next_at INTEGER
        ) STRICT;
        CREATE INDEX refresh_next ON refresh (next_at) WHERE next_at IS NOT NULL;

        CREATE TABLE resume_data (
            nonce BLOB PRIMARY KEY,
            app INTEGER NOT NULL,
            file TEXT NOT NULL,
            spent INTEGER NOT NULL DEFAULT 0,
            expires_at INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX resume_data_expiry ON resume_data (expires_at);
        CREATE INDEX resume_data_file ON resume_data (file);

        CREATE TABLE idempotency (
            principal TEXT NOT NULL,
            idempotency_key TEXT NOT NULL,
            fingerprint BLOB NOT NULL,
            status INTEGER NOT NULL,
            headers_document BLOB NOT NULL,
            answer BLOB NOT NULL,
            created_at INTEGER NOT NULL,
            PRIMARY KEY (principal, idempotency_key)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX idempotency_age ON idempotency (created_at);

        CREATE TABLE setting (
            name TEXT PRIMARY KEY,
            document BLOB NOT NULL
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE discarded_file (
            path TEXT PRIMARY KEY
        ) STRICT, WITHOUT ROWID;
        """

    /// The nodes, which only a server's store has. Small contents are mostly compressed already: a server would spend more
    /// on compressing them than it saves.
    private static let server10: StaticString = """
        CREATE TABLE node (
            id TEXT COLLATE "C" PRIMARY KEY,
            -- Each process that takes the node's place draws a new epoch: a group of an earlier one is not committed.
            epoch BIGINT NOT NULL,
            -- The number of the last group of writes that was committed.
            committed BIGINT NOT NULL DEFAULT 0,
            -- Renewed by each group, and when there is none.
            lease_until TIMESTAMPTZ NOT NULL,
            contents TEXT COLLATE "C",
            document BYTEA,
            draining BOOLEAN NOT NULL DEFAULT FALSE
        ) WITH (fillfactor = 50);
        ALTER TABLE content ALTER COLUMN bytes SET STORAGE EXTERNAL;
        """
}
