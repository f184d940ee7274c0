import SQLite

/// The tables, as migrations that are applied once and in order.
///
/// Documents (`…_document` columns) are Core values as JSON text, or sealed whole when they hold a secret. Times are
/// milliseconds since 1970. What is finished lives in `task`; what is not has a row in `live` too, so that the scheduler
/// and recovery read only what they need.
enum Schema {
    static let migrations = [
        Migration(version: 1, sql: version1), Migration(version: 2, sql: version2),
        Migration(version: 3, sql: version3), Migration(version: 4, sql: version4),
        Migration(version: 5, sql: version5), Migration(version: 6, sql: version6),
        Migration(version: 7, sql: version7), Migration(version: 8, sql: version8),
        Migration(version: 9, sql: version9),
    ]

    private static let version1: StaticString = """
        CREATE TABLE app (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            identifier TEXT NOT NULL UNIQUE,
            webhook_document BLOB NOT NULL,
            refresh_status TEXT NOT NULL,
            force_quit INTEGER NOT NULL DEFAULT 0,
            limits_document BLOB NOT NULL,
            unfinished_tasks INTEGER NOT NULL DEFAULT 0,
            stored_bytes INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;

        CREATE TABLE api_key (
            key_identifier TEXT PRIMARY KEY,
            app INTEGER NOT NULL,
            hash BLOB NOT NULL,
            scopes TEXT NOT NULL,
            created_at INTEGER NOT NULL,
            expires_at INTEGER
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX api_key_app ON api_key (app);

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
            state INTEGER NOT NULL,
            forgotten INTEGER NOT NULL DEFAULT 0,
            configuration_document BLOB NOT NULL,
            sends_launches INTEGER NOT NULL,
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
        CREATE INDEX session_forgotten ON session (id) WHERE forgotten = 1;
        CREATE INDEX session_cause ON session (id) WHERE forgotten = 0 AND last_seq > acknowledged_seq;
        CREATE INDEX session_invalid ON session (invalid_at) WHERE state = 2 AND forgotten = 0;
        CREATE TABLE incarnation (
            app INTEGER NOT NULL,
            identifier TEXT NOT NULL,
            last INTEGER NOT NULL,
            PRIMARY KEY (app, identifier)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE task (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session INTEGER NOT NULL,
            number INTEGER NOT NULL,
            state INTEGER NOT NULL,
            outcome INTEGER,
            client_task_id TEXT,
            fingerprint BLOB,
            group_name TEXT,
            priority REAL NOT NULL,
            specification_document BLOB NOT NULL,
            result_document BLOB,
            created_at INTEGER NOT NULL,
            started_at INTEGER,
            completed_at INTEGER,
            completed_seq INTEGER,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE UNIQUE INDEX task_number ON task (session, number);
        CREATE UNIQUE INDEX task_client ON task (session, client_task_id) WHERE client_task_id IS NOT NULL;
        CREATE INDEX task_group ON task (session, group_name, number) WHERE group_name IS NOT NULL;
        CREATE INDEX task_outcome ON task (session, outcome, number) WHERE outcome IS NOT NULL AND outcome <> 0;
        CREATE INDEX task_completed ON task (session, completed_seq) WHERE completed_seq IS NOT NULL;

        CREATE TABLE live (
            task INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            lane INTEGER NOT NULL,
            number INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            stage INTEGER NOT NULL,
            priority REAL NOT NULL,
            due_at INTEGER,
            begins_at INTEGER,
            resource_deadline INTEGER,
            resource_remaining INTEGER,
            body INTEGER,
            progress_document BLOB
        ) STRICT;
        CREATE INDEX live_queue ON live (lane, priority DESC, number) WHERE stage = 2;
        CREATE INDEX live_due ON live (due_at) WHERE due_at IS NOT NULL;
        CREATE INDEX live_deadline ON live (resource_deadline) WHERE resource_deadline IS NOT NULL;
        CREATE INDEX live_session ON live (session, number);
        CREATE INDEX live_active ON live (task) WHERE stage = 3;

        CREATE TABLE lane (
            id INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            origin TEXT NOT NULL,
            limit_per_host INTEGER NOT NULL,
            background INTEGER NOT NULL,
            conditions INTEGER NOT NULL,
            queued INTEGER NOT NULL DEFAULT 0,
            UNIQUE (session, origin)
        ) STRICT;
        CREATE INDEX lane_queued ON lane (id) WHERE queued > 0;

        CREATE TABLE event (
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            kind INTEGER NOT NULL,
            task INTEGER,
            occurred_at INTEGER NOT NULL,
            data BLOB,
            PRIMARY KEY (session, seq)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE acknowledgement (
            session INTEGER NOT NULL,
            through INTEGER NOT NULL,
            at INTEGER NOT NULL,
            PRIMARY KEY (session, through)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX acknowledgement_at ON acknowledgement (at);

        CREATE TABLE content (
            task INTEGER PRIMARY KEY,
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            length INTEGER NOT NULL,
            algorithm TEXT NOT NULL,
            digest TEXT NOT NULL,
            bytes BLOB,
            file TEXT,
            expires_at INTEGER,
            expired INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX content_seq ON content (session, seq);
        CREATE INDEX content_expiry ON content (expires_at) WHERE expired = 0;
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
            kind INTEGER NOT NULL,
            state INTEGER NOT NULL,
            state_document BLOB NOT NULL,
            reasons INTEGER NOT NULL DEFAULT 0,
            last_seq INTEGER NOT NULL DEFAULT 0,
            attempts INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER,
            body BLOB,
            traceparent TEXT,
            created_at INTEGER NOT NULL,
            expires_at INTEGER,
            completed_at INTEGER,
            completion_document BLOB,
            result TEXT
        ) STRICT;
        CREATE INDEX launch_due ON launch (state, due_at, app) WHERE due_at IS NOT NULL;
        CREATE INDEX launch_queue ON launch (app, attempts > 0, due_at) WHERE state = 0;
        CREATE INDEX launch_open ON launch (app, id) WHERE state < 4;
        CREATE INDEX launch_parked ON launch (app) WHERE state = 3;
        CREATE INDEX launch_finished ON launch (completed_at) WHERE completed_at IS NOT NULL;
        CREATE INDEX launch_app ON launch (app, id);
        CREATE INDEX launch_session ON launch (session, id) WHERE session IS NOT NULL;

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

        CREATE TABLE question (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            task INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            state INTEGER NOT NULL,
            question_document BLOB NOT NULL,
            answer_document BLOB,
            disposition TEXT,
            created_at INTEGER NOT NULL,
            deadline INTEGER NOT NULL,
            answered_at INTEGER
        ) STRICT;
        CREATE INDEX question_open ON question (session, seq) WHERE state = 0;
        CREATE INDEX question_deadline ON question (deadline) WHERE state = 0;
        CREATE INDEX question_app ON question (app, id);
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
        CREATE UNIQUE INDEX credential_space ON credential (app, ifnull(session, 0), space);

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
}
