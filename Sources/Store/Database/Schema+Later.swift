import SQL

extension Schema {
    /// The tasks of an app, whatever their session: `id` gives their order, and each filter of the list has its index.
    static let version11: StaticString = """
        ALTER TABLE task ADD COLUMN app INTEGER NOT NULL DEFAULT 0;
        UPDATE task SET app = session.app FROM session WHERE session.id = task.session;
        CREATE INDEX task_app ON task (app);
        CREATE INDEX task_app_unfinished ON task (app, state) WHERE state <> 'completed';
        CREATE INDEX task_app_outcome ON task (app, outcome) WHERE outcome <> 'succeeded';
        CREATE INDEX task_app_group ON task (app, group_name) WHERE group_name IS NOT NULL;
        CREATE INDEX task_app_client ON task (app, client_task_id) WHERE client_task_id IS NOT NULL;
        """

    /// Multipart uploads that have begun, so that each of them is completed or aborted.
    static let version12: StaticString = """
        CREATE TABLE bucket_upload (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            task INTEGER NOT NULL,
            bucket TEXT NOT NULL,
            object_key TEXT NOT NULL,
            upload_id TEXT,
            begun_at INTEGER NOT NULL,
            due_at INTEGER NOT NULL,
            attempts INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX bucket_upload_task ON bucket_upload (task);
        CREATE INDEX bucket_upload_due ON bucket_upload (bucket, due_at);
        CREATE INDEX bucket_upload_object ON bucket_upload (bucket, object_key);
        """

    /// The claims of nodes that share the store: `node` is the node that claimed a task and has not released it, or
    /// that delivers a launch. A SQLite store has one node, which has no name.
    static let version13: StaticString = """
        ALTER TABLE live ADD COLUMN node TEXT;
        CREATE INDEX live_node ON live (node) WHERE node IS NOT NULL;
        ALTER TABLE launch ADD COLUMN node TEXT;
        CREATE INDEX launch_node ON launch (node) WHERE state = 'delivering';

        -- Clients with a stream or a wait at one of many nodes, and when the last of a node's left.
        CREATE TABLE presence (
            session INTEGER NOT NULL,
            node TEXT NOT NULL,
            kind TEXT CHECK (kind = 'stream' OR kind = 'wait'),
            detached_at INTEGER,
            PRIMARY KEY (session, node)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX presence_node ON presence (node);
        CREATE INDEX presence_detached ON presence (detached_at) WHERE detached_at IS NOT NULL;
        """

    /// Contents and bodies that are objects in the bucket of contents. A body is the concatenation of its objects.
    /// `digest_document` holds the resumable digest of a draft.
    static let version14: StaticString = """
        ALTER TABLE content ADD COLUMN object TEXT;
        CREATE INDEX content_object ON content (object) WHERE object IS NOT NULL;

        ALTER TABLE body ADD COLUMN digest_document BLOB;
        CREATE TABLE body_object (
            body INTEGER NOT NULL,
            position INTEGER NOT NULL,
            object_key TEXT NOT NULL,
            length INTEGER NOT NULL,
            PRIMARY KEY (body, position)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX body_object_key ON body_object (object_key);

        ALTER TABLE resume_data ADD COLUMN upload INTEGER;
        ALTER TABLE resume_data ADD COLUMN upload_document BLOB;
        """

    /// The bytes that resume data holds count as stored bytes of its app, and are deleted with the resume data.
    static let version15: StaticString = """
        ALTER TABLE resume_data ADD COLUMN length INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX resume_data_app ON resume_data (app);
        """

    /// Records that nodes share about their work. `held_connection` counts the connections of a node's downloads in
    /// segments, beyond those that lanes count. `live.left_by` names the nodes that were taken over while they
    /// transferred the task and have not started again. `live.held_by` names the node that suspends the task to cancel
    /// it with resume data. A row of `useless_file` names the node whose disk has the file; none with SQLite.
    static let version16: StaticString = """
        CREATE TABLE held_connection (
            node TEXT NOT NULL,
            session INTEGER NOT NULL,
            origin TEXT NOT NULL,
            connections INTEGER NOT NULL,
            PRIMARY KEY (node, session, origin)
        ) STRICT, WITHOUT ROWID;

        ALTER TABLE live ADD COLUMN left_by TEXT;
        CREATE INDEX live_left ON live (task) WHERE left_by IS NOT NULL;
        ALTER TABLE live ADD COLUMN held_by TEXT;
        CREATE INDEX live_held ON live (held_by) WHERE held_by IS NOT NULL;

        ALTER TABLE resume_data ADD COLUMN node TEXT;

        CREATE TABLE useless_file (
            node TEXT NOT NULL,
            path TEXT NOT NULL,
            PRIMARY KEY (node, path)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO useless_file (node, path) SELECT '', path FROM discarded_file;
        DROP TABLE discarded_file;
        """

    /// Stalls of sessions, see ``StallWatch``: an interval in milliseconds, none for sessions that are never judged. An
    /// older session gets the default interval. `resets` counts resets, so that other nodes close connections.
    static let version17: StaticString = """
        ALTER TABLE session ADD COLUMN stall_interval INTEGER;
        UPDATE session SET stall_interval = 3600000;
        ALTER TABLE session ADD COLUMN progressed_at INTEGER NOT NULL DEFAULT 0;
        UPDATE session SET progressed_at = created_at;
        ALTER TABLE session ADD COLUMN stalled INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE session ADD COLUMN stall_check_at INTEGER;
        ALTER TABLE session ADD COLUMN last_stall_seq INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE session ADD COLUMN resets INTEGER NOT NULL DEFAULT 0;
        CREATE INDEX session_stall ON session (stall_check_at) WHERE stall_check_at IS NOT NULL;

        CREATE TABLE event_of_17 (
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (
                kind = 'task.willBeginDelayedRequest' OR kind = 'task.didReceiveChallenge' OR
                kind = 'task.didResumeAtOffset' OR kind = 'task.didFinishDownloading' OR
                kind = 'task.didFinishCollectingMetrics' OR kind = 'task.didComplete' OR kind = 'session.didStall' OR
                kind = 'session.didFinishEvents' OR kind = 'session.didBecomeInvalid'),
            task INTEGER,
            occurred_at INTEGER NOT NULL,
            data BLOB,
            PRIMARY KEY (session, seq)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO event_of_17 (session, seq, kind, task, occurred_at, data) \
            SELECT session, seq, kind, task, occurred_at, data FROM event;
        DROP TABLE event;
        ALTER TABLE event_of_17 RENAME TO event;
        """

    /// Contents that several rows refer to, responses that tasks reuse, and tasks that wait for another one's transfer.
    ///
    /// `content.file` and `content.object` may name the same bytes in several rows of an app, and in `cached`: the last
    /// reference frees them. A row of `cached` without a selector is the result of a `flight` and no entry of the
    /// cache. `cache` has the counters of each app, and under app 0 the length of all entries. `live.flight` names the
    /// flight that a task leads or follows, and `is_strict` a follower that may only reuse what RFC 9111 allows.
    static let version18: StaticString = """
        CREATE TABLE live_of_18 (
            task INTEGER PRIMARY KEY,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            lane INTEGER NOT NULL,
            number INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (kind = 'download' OR kind = 'upload'),
            stage TEXT NOT NULL CHECK (
                stage = 'suspended' OR stage = 'delayed' OR stage = 'queued' OR stage = 'active' OR
                stage = 'retryWait' OR stage = 'waitingForConnectivity' OR stage = 'awaitingAnswer' OR
                stage = 'quarantined' OR stage = 'waitingForDisk' OR stage = 'following'),
            priority REAL NOT NULL,
            due_at INTEGER,
            begins_at INTEGER,
            resource_deadline INTEGER,
            resource_remaining INTEGER,
            body INTEGER,
            progress_document BLOB,
            move_document BLOB,
            disk_needed INTEGER NOT NULL DEFAULT 0,
            disk_kept INTEGER NOT NULL DEFAULT 0,
            disk_not_before INTEGER NOT NULL DEFAULT 0,
            crashes INTEGER NOT NULL DEFAULT 0,
            question INTEGER,
            node TEXT,
            left_by TEXT,
            held_by TEXT,
            flight INTEGER,
            is_strict INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        INSERT INTO live_of_18 (task, app, session, lane, number, kind, stage, priority, due_at, begins_at, \
                resource_deadline, resource_remaining, body, progress_document, move_document, \
                disk_needed, disk_kept, disk_not_before, crashes, question, node, left_by, held_by) \
            SELECT task, app, session, lane, number, kind, stage, priority, due_at, begins_at, \
                resource_deadline, resource_remaining, body, progress_document, move_document, \
                disk_needed, disk_kept, disk_not_before, crashes, question, node, left_by, held_by FROM live;
        DROP TABLE live;
        ALTER TABLE live_of_18 RENAME TO live;
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
        CREATE INDEX live_node ON live (node) WHERE node IS NOT NULL;
        CREATE INDEX live_left ON live (task) WHERE left_by IS NOT NULL;
        CREATE INDEX live_held ON live (held_by) WHERE held_by IS NOT NULL;
        CREATE INDEX live_flight ON live (flight, task) WHERE flight IS NOT NULL;

        ALTER TABLE content ADD COLUMN app INTEGER NOT NULL DEFAULT 0;
        UPDATE content SET app = session.app FROM session WHERE session.id = content.session;
        CREATE INDEX content_digest ON content (app, digest) WHERE file IS NOT NULL OR object IS NOT NULL;

        CREATE TABLE cached (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            selector BLOB,
            url BLOB NOT NULL,
            document BLOB NOT NULL,
            length INTEGER NOT NULL,
            digest TEXT NOT NULL,
            bytes BLOB,
            file TEXT,
            object TEXT,
            used_at INTEGER NOT NULL
        ) STRICT;
        CREATE INDEX cached_app ON cached (app);
        CREATE INDEX cached_selector ON cached (app, selector, id) WHERE selector IS NOT NULL;
        CREATE INDEX cached_url ON cached (app, url) WHERE selector IS NOT NULL;
        CREATE INDEX cached_used ON cached (app, used_at, id) WHERE selector IS NOT NULL;
        CREATE INDEX cached_digest ON cached (app, digest) WHERE file IS NOT NULL OR object IS NOT NULL;
        CREATE INDEX cached_file ON cached (file) WHERE file IS NOT NULL;
        CREATE INDEX cached_object ON cached (object) WHERE object IS NOT NULL;

        CREATE TABLE cache (
            app INTEGER PRIMARY KEY,
            entries INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            -- Of bytes that several rows refer to: their length for each reference but one.
            shared_bytes INTEGER NOT NULL DEFAULT 0,
            hits INTEGER NOT NULL DEFAULT 0,
            revalidations INTEGER NOT NULL DEFAULT 0,
            collapsed INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX cache_bytes ON cache (bytes) WHERE app > 0;

        CREATE TABLE flight (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            selector BLOB NOT NULL,
            -- None once the transfer has ended.
            leader INTEGER,
            -- The row of `cached` that followers share, if the origin has answered.
            result INTEGER,
            is_reusable INTEGER NOT NULL DEFAULT 1,
            releasing INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX flight_app ON flight (app);
        CREATE UNIQUE INDEX flight_selector ON flight (app, selector) WHERE leader IS NOT NULL;
        CREATE INDEX flight_leader ON flight (leader) WHERE leader IS NOT NULL;
        CREATE INDEX flight_result ON flight (result) WHERE result IS NOT NULL;
        CREATE INDEX flight_releasing ON flight (id) WHERE releasing = 1;
        """

    /// Sets of files: their versions, and the files of each version.
    ///
    /// `file_set.place` names a destination that no other set may have. `file_set.current` is the version that readers see,
    /// `switching` the one that becomes current as soon as the destination shows it, and `newest` the newest that was ever
    /// published. `forgotten` is 1 for a deleted set whose files are removed, 2 if those of the current version stay, and 3
    /// once nothing is left to do at the destination. A version without a name is being received.
    /// `due_at` is when the next step on a set or a version is due. `set_file.listed` is the digest that the file must
    /// have, with its algorithm. `live.set_version` and `session.versions_in_flight` connect tasks and launches with
    /// versions.
    static let version19: StaticString = """
        CREATE TABLE file_set (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            app INTEGER NOT NULL,
            name TEXT NOT NULL,
            configuration_document BLOB NOT NULL,
            place TEXT,
            current INTEGER,
            switching INTEGER,
            newest INTEGER NOT NULL DEFAULT 0,
            forgotten INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE UNIQUE INDEX file_set_name ON file_set (app, name) WHERE forgotten = 0;
        CREATE INDEX file_set_app ON file_set (app, id);
        CREATE INDEX file_set_place ON file_set (place) WHERE place IS NOT NULL;
        CREATE INDEX file_set_due ON file_set (due_at) WHERE due_at IS NOT NULL;

        CREATE TABLE set_version (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            public_id TEXT NOT NULL UNIQUE,
            file_set INTEGER NOT NULL,
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            name TEXT,
            fingerprint BLOB,
            state TEXT NOT NULL CHECK (
                state = 'expanding' OR state = 'fetching' OR state = 'verifying' OR state = 'publishing' OR
                state = 'published' OR state = 'failed' OR state = 'superseded' OR state = 'cancelled'),
            document BLOB NOT NULL,
            -- The task that fetches the list of files.
            list_task INTEGER,
            files INTEGER NOT NULL DEFAULT 0,
            open_files INTEGER NOT NULL DEFAULT 0,
            fetched_files INTEGER NOT NULL DEFAULT 0,
            reused_files INTEGER NOT NULL DEFAULT 0,
            failed_files INTEGER NOT NULL DEFAULT 0,
            bytes INTEGER NOT NULL DEFAULT 0,
            fetched_bytes INTEGER NOT NULL DEFAULT 0,
            reused_bytes INTEGER NOT NULL DEFAULT 0,
            manifest_digest TEXT,
            -- Whether the version is being removed: no reader sees it.
            removing INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER,
            attempts INTEGER NOT NULL DEFAULT 0,
            created_at INTEGER NOT NULL,
            published_at INTEGER,
            replaced_at INTEGER,
            ended_at INTEGER,
            revision INTEGER NOT NULL DEFAULT 1
        ) STRICT;
        CREATE INDEX set_version_set ON set_version (file_set, id);
        CREATE UNIQUE INDEX set_version_name ON set_version (file_set, name) WHERE name IS NOT NULL AND removing = 0 \
            AND state <> 'failed' AND state <> 'cancelled' AND state <> 'superseded';
        CREATE INDEX set_version_session ON set_version (session);
        CREATE INDEX set_version_due ON set_version (due_at) WHERE due_at IS NOT NULL;

        CREATE TABLE set_file (
            version INTEGER NOT NULL,
            path TEXT NOT NULL,
            app INTEGER NOT NULL,
            file_document BLOB NOT NULL,
            listed TEXT,
            state TEXT NOT NULL CHECK (state = 'listed' OR state = 'fetching' OR state = 'kept' OR state = 'failed'),
            task INTEGER,
            failure TEXT,
            length INTEGER,
            algorithm TEXT,
            digest TEXT,
            response_document BLOB,
            reused INTEGER NOT NULL DEFAULT 0,
            bytes BLOB,
            file TEXT,
            object TEXT,
            PRIMARY KEY (version, path)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX set_file_state ON set_file (version, state, path);
        CREATE INDEX set_file_task ON set_file (task) WHERE task IS NOT NULL;
        CREATE INDEX set_file_expected ON set_file (app, listed) WHERE listed IS NOT NULL AND state = 'kept';
        CREATE INDEX set_file_digest ON set_file (app, digest) WHERE state = 'kept';
        CREATE INDEX set_file_file ON set_file (file) WHERE file IS NOT NULL;
        CREATE INDEX set_file_object ON set_file (object) WHERE object IS NOT NULL;

        ALTER TABLE live ADD COLUMN set_version INTEGER;
        ALTER TABLE session ADD COLUMN versions_in_flight INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE session ADD COLUMN last_publication_seq INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE session ADD COLUMN last_set_failure_seq INTEGER NOT NULL DEFAULT 0;

        CREATE TABLE event_of_19 (
            session INTEGER NOT NULL,
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (
                kind = 'task.willBeginDelayedRequest' OR kind = 'task.didReceiveChallenge' OR
                kind = 'task.didResumeAtOffset' OR kind = 'task.didFinishDownloading' OR
                kind = 'task.didFinishCollectingMetrics' OR kind = 'task.didComplete' OR kind = 'session.didStall' OR
                kind = 'set.didPublish' OR kind = 'set.didFail' OR
                kind = 'session.didFinishEvents' OR kind = 'session.didBecomeInvalid'),
            task INTEGER,
            occurred_at INTEGER NOT NULL,
            data BLOB,
            PRIMARY KEY (session, seq)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO event_of_19 (session, seq, kind, task, occurred_at, data) \
            SELECT session, seq, kind, task, occurred_at, data FROM event;
        DROP TABLE event;
        ALTER TABLE event_of_19 RENAME TO event;
        """

    /// `live.adopts` is the file of another task that the task resumes from and has not adopted yet, as its progress says.
    /// The counters of `cache` leave out the results of flights.
    static let version20: StaticString = """
        ALTER TABLE live ADD COLUMN adopts TEXT;
        CREATE INDEX live_adopts ON live (adopts) WHERE adopts IS NOT NULL;

        UPDATE cache SET entries = (SELECT count(*) FROM cached WHERE app = cache.app AND selector IS NOT NULL), \
            bytes = (SELECT coalesce(sum(length + 4096), 0) FROM cached WHERE app = cache.app AND selector IS NOT NULL) \
            WHERE app > 0;
        UPDATE cache SET entries = (SELECT coalesce(sum(entries), 0) FROM cache AS of_app WHERE of_app.app > 0), \
            bytes = (SELECT coalesce(sum(bytes), 0) FROM cache AS of_app WHERE of_app.app > 0) WHERE app = 0;
        """

    /// Cancellations of all tasks of a session, or of an app if `session` is 0, up to the task `newest`.
    static let version21: StaticString = """
        CREATE TABLE cancellation (
            app INTEGER NOT NULL,
            session INTEGER NOT NULL,
            reason INTEGER,
            newest INTEGER NOT NULL,
            PRIMARY KEY (app, session)
        ) STRICT, WITHOUT ROWID;
        """

    /// `file_set.place` of a repository in the cache of huggingface_hub is its folder: `hf-cache/ROOT/PATH/TYPE/ORG/NAME`
    /// becomes `root/ROOT/PATH/TYPEs--ORG--NAME`. The first statement joins organization and name. `rtrim` removes the
    /// last part of a place, because its characters are all of the place's but the slash.
    ///
    /// Small contents are found by their digests, too.
    static let version22: StaticString = """
        CREATE INDEX content_small ON content (app, digest) WHERE bytes IS NOT NULL;
        CREATE INDEX cached_small ON cached (app, digest) WHERE bytes IS NOT NULL;

        UPDATE file_set SET place = rtrim(rtrim(place, replace(place, '/', '')), '/') || '--' || \
            substr(place, length(rtrim(place, replace(place, '/', ''))) + 1) WHERE place LIKE 'hf-cache/%' AND \
            (rtrim(rtrim(rtrim(place, replace(place, '/', '')), '/'), replace(place, '/', '')) LIKE '%/model/' OR \
            rtrim(rtrim(rtrim(place, replace(place, '/', '')), '/'), replace(place, '/', '')) LIKE '%/dataset/' OR \
            rtrim(rtrim(rtrim(place, replace(place, '/', '')), '/'), replace(place, '/', '')) LIKE '%/space/');
        UPDATE file_set SET place = 'root/' || \
            substr(rtrim(rtrim(place, replace(place, '/', '')), '/'), length('hf-cache/') + 1) || 's--' || \
            substr(place, length(rtrim(place, replace(place, '/', ''))) + 1) WHERE place LIKE 'hf-cache/%';
        """

    /// The small contents of an app are found by their digests once it has sets: see ``Store/Sets/indexContents(of:)``.
    static let version23: StaticString = """
        ALTER TABLE app ADD COLUMN indexes_contents INTEGER NOT NULL DEFAULT 0;
        UPDATE app SET indexes_contents = 1 WHERE id IN (SELECT app FROM file_set);
        ALTER TABLE content ADD COLUMN indexed INTEGER NOT NULL DEFAULT 0;
        UPDATE content SET indexed = 1 WHERE bytes IS NOT NULL AND app IN (SELECT app FROM file_set);
        DROP INDEX content_small;
        CREATE INDEX content_indexed ON content (app, digest) WHERE indexed = 1;

        CREATE TABLE origin_pause (
            app INTEGER NOT NULL,
            origin TEXT NOT NULL,
            ends_at INTEGER NOT NULL,
            ends_for_others_at INTEGER NOT NULL,
            PRIMARY KEY (app, origin)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX origin_pause_end ON origin_pause (ends_at);
        """
}
