PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE acknowledgement (
    session INTEGER NOT NULL,
    through INTEGER NOT NULL,
    at INTEGER NOT NULL,
    contents_expired INTEGER NOT NULL DEFAULT 0,
    events_dropped INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (session, through)
) STRICT, WITHOUT ROWID;
CREATE TABLE api_key (
    key_identifier TEXT PRIMARY KEY,
    app INTEGER NOT NULL,
    hash BLOB NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO api_key VALUES('key1',1,X'010203','sessions:read sessions:write events app',1800000000000,NULL);
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
, indexes_contents INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO app VALUES(1,'app',X'7b227374617465223a22656e61626c6564222c226c61756e6368446561646c696e65223a36302c2275726c223a2268747470733a5c2f5c2f6170702e6578616d706c655c2f686f6f6b222c22696e636c7564654576656e7473223a307d','available',0,X'7b226d6178696d756d556e66696e69736865645461736b73223a313030303030302c226d6178696d756d53746f7265644279746573223a393232333337323033363835343737353830377d',3,10,1800000000000,0,NULL,0,1800000000000,1,1);
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
, digest_document BLOB) STRICT;
INSERT INTO body VALUES(1,'body',1,1,3,NULL,'d','text/plain',X'010203',NULL,0,1800000000000,1800086400000,NULL);
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
, object TEXT, app INTEGER NOT NULL DEFAULT 0, indexed INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO content VALUES(1,1,3,7,'sha-256','ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73',X'636f6e74656e74',NULL,1802592000000,0,NULL,1,1);
CREATE TABLE cookie_jar (
    session INTEGER PRIMARY KEY,
    jar BLOB NOT NULL
) STRICT;
INSERT INTO cookie_jar VALUES(1,X'01a1c8552b3fa58ad76678b86687a5cb67e7adb9dac20320a0895dfa94d3b31ee87b354f3a17f7');
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
INSERT INTO credential VALUES(1,'credential',1,NULL,'origin.example:443/https/HTTPBasic/r',X'7b227265616c6d223a2272222c2261757468656e7469636174696f6e4d6574686f64223a22485454504261736963222c22697350726f7879223a66616c73652c22686f7374223a226f726967696e2e6578616d706c65222c22706f7274223a3434332c22736368656d65223a226874747073227d',X'01f66895940c05c44927956281941d6587ecc3dcad14cb99ef8dbea5c0b481451ba859f5c7ab106a1d32b3bb8e6dca2fcc51c9883571478260dfa83520cee62edf157005deb3f08fa023856f310d5580c499ac401b13e374dbc2e064cb0be3e7bb2fb8f863d7eb6ffd5f0f0e0c',1800000000000);
CREATE TABLE deleted_app (
    app INTEGER PRIMARY KEY
) STRICT;
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
CREATE TABLE incarnation (
    app INTEGER NOT NULL,
    identifier TEXT NOT NULL,
    last INTEGER NOT NULL,
    forgotten_at INTEGER,
    PRIMARY KEY (app, identifier)
) STRICT, WITHOUT ROWID;
INSERT INTO incarnation VALUES(1,'session',1,NULL);
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
INSERT INTO lane VALUES(1,1,1,'https://origin.example:443',6,0,0,0,1800000000000);
INSERT INTO lane VALUES(2,1,1,'https://other.example:443',6,0,0,1,1800000000000);
INSERT INTO lane VALUES(3,1,1,'https://third.example:443',6,0,0,0,1800000000000);
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
, node TEXT) STRICT;
INSERT INTO launch VALUES(1,'lnch_7j6oYoxfQRQxl9FTfBzVMw',1,1,'session','session.handleEvents','pending',X'7b2270656e64696e67223a7b226e657874417474656d70744174223a313830303030303030303030302c22617474656d707473223a307d7d','firstAttempt',3,3,0,1800000000000,NULL,NULL,1800000000000,1800345600000,NULL,NULL,NULL);
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
INSERT INTO question VALUES(1,'q',1,1,4,4,'open','1bb4d7669b109cf1395ad59b710022ff02fbd6708a6153398af8cc9fa6e435c4',X'7b2270726576696f75734661696c757265436f756e74223a302c226b696e64223a226368616c6c656e6765222c2270726f74656374696f6e5370616365223a7b227265616c6d223a2272222c22706f7274223a3434332c2261757468656e7469636174696f6e4d6574686f64223a22485454504261736963222c22697350726f7879223a66616c73652c22686f7374223a226f726967696e2e6578616d706c65222c22736368656d65223a226874747073227d7d',NULL,NULL,1,0,1800000000000,1800086400000,NULL);
CREATE TABLE refresh (
    app INTEGER PRIMARY KEY,
    document BLOB NOT NULL,
    next_at INTEGER
) STRICT;
INSERT INTO refresh VALUES(1,X'7b22696e74657276616c5365744174223a313830303030303030303030302c22696e74657276616c223a3930302c22617665726167654475726174696f6e223a302c2273747265746368223a317d',1800000960000);
CREATE TABLE resume_data (
    nonce BLOB PRIMARY KEY,
    app INTEGER NOT NULL,
    file TEXT NOT NULL,
    spent INTEGER NOT NULL DEFAULT 0,
    expires_at INTEGER NOT NULL
, upload INTEGER, upload_document BLOB, length INTEGER NOT NULL DEFAULT 0, node TEXT) STRICT, WITHOUT ROWID;
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
, stall_interval INTEGER, progressed_at INTEGER NOT NULL DEFAULT 0, stalled INTEGER NOT NULL DEFAULT 0, stall_check_at INTEGER, last_stall_seq INTEGER NOT NULL DEFAULT 0, resets INTEGER NOT NULL DEFAULT 0, versions_in_flight INTEGER NOT NULL DEFAULT 0, last_publication_seq INTEGER NOT NULL DEFAULT 0, last_set_failure_seq INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO session VALUES(1,1,'session',1,'active',0,X'7b2273657373696f6e53656e64734c61756e63684576656e7473223a747275652c22616c6c6f7773436f6e73747261696e65644e6574776f726b416363657373223a747275652c226e6574776f726b5365727669636554797065223a2264656661756c74222c2270696e6e65645075626c69634b657973223a7b7d2c226874747053686f756c64536574436f6f6b696573223a747275652c22746c734d696e696d756d537570706f7274656450726f746f636f6c56657273696f6e223a22312e32222c227761697473466f72436f6e6e6563746976697479223a747275652c22697344697363726574696f6e617279223a66616c73652c2268747470436f6f6b6965416363657074506f6c696379223a226f6e6c7946726f6d4d61696e446f63756d656e74446f6d61696e222c2274696d656f7574496e74657276616c466f7252657175657374223a36302c22687474704164646974696f6e616c48656164657273223a5b5d2c22616c6c6f777343656c6c756c6172416363657373223a747275652c22616c6c6f7773457870656e736976654e6574776f726b416363657373223a747275652c22687474704d6178696d756d436f6e6e656374696f6e73506572486f7374223a362c2272657175697265735365637572655472616e73706f7274223a66616c73652c2261757468656e7469636174696f6e4368616c6c656e676573223a2261736b222c227265747279506f6c696379223a22726f62757374222c2274696d656f7574496e74657276616c466f725265736f75726365223a3630343830302c22726573756d61626c6555706c6f616473223a226175746f227d',1,0,604800000,NULL,5,4,0,0,3,0,1,0,0,NULL,1,2,1,0,0,0,0,0,0,1800000000000,NULL,2,3600000,1800000000000,0,NULL,0,0,0,0,0);
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    document BLOB NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting VALUES('master-key',X'0197c2c11cd1811148e0232e288f15147fa67affa7f05a6a7e1639c9c8382a1143b96b35dfc9d8c8');
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
, app INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO task VALUES(1,1,1,'completed','succeeded',NULL,NULL,NULL,0.5,X'7b226b696e64223a22646f776e6c6f6164222c2272657175657374223a7b2275726c223a2268747470733a2f2f6f726967696e2e6578616d706c652f61222c226d6574686f64223a22474554222c2268656164657273223a5b5d2c2273656e73697469766548656164657273223a5b5d7d2c226d65746164617461223a7b7d2c227072696f72697479223a302e352c22636f6e6669726d4265666f72655374617274223a66616c73652c2261636365707461626c65537461747573436f646573223a5b7b226669727374223a3230302c226c617374223a3239397d5d2c226661696c4f6e485454504572726f72223a66616c73657d',X'7b2270726f6772657373223a7b22617474656d707473223a7b22617474656d707473223a312c226661696c7572657353696e636550726f6772657373223a302c22686967686573744f6666736574223a302c22737461747573417474656d707473223a302c226e616d65417474656d707473223a302c227265737461727473223a302c226469676573744d69736d617463686573223a307d2c2264757261626c654f6666736574223a302c22726564697265637473223a5b5d2c227472616e73616374696f6e73223a5b5d2c22636f756e744f66427974657353656e74223a302c22636f756e744f6642797465735265636569766564223a302c226973436f6e6669726d6564223a66616c73652c2261757468656e7469636174696f6e223a5b5d7d2c22636f6e74656e744c656e677468223a372c22636f6e74656e74446967657374223a7b22616c676f726974686d223a227368612d323536222c2276616c7565223a2265643730303262343339653961633834356632323335376438323262616331343434373330666264623630313664336563393433323239376239656339663733227d7d',0,1800000000000,1800000000000,1800000000000,3,2,1);
INSERT INTO task VALUES(2,1,2,'suspended',NULL,NULL,NULL,NULL,0.5,X'7b226b696e64223a22646f776e6c6f6164222c2272657175657374223a7b2275726c223a2268747470733a2f2f6f726967696e2e6578616d706c652f73757370656e646564222c226d6574686f64223a22474554222c2268656164657273223a5b5d2c2273656e73697469766548656164657273223a5b5d7d2c226d65746164617461223a7b7d2c227072696f72697479223a302e352c22636f6e6669726d4265666f72655374617274223a66616c73652c2261636365707461626c65537461747573436f646573223a5b7b226669727374223a3230302c226c617374223a3239397d5d2c226661696c4f6e485454504572726f72223a66616c73657d',NULL,0,1800000000000,NULL,NULL,NULL,1,1);
INSERT INTO task VALUES(3,1,3,'running',NULL,NULL,NULL,NULL,0.5,X'7b226b696e64223a22646f776e6c6f6164222c2272657175657374223a7b2275726c223a2268747470733a2f2f6f746865722e6578616d706c652f61736b696e67222c226d6574686f64223a22474554222c2268656164657273223a5b5d2c2273656e73697469766548656164657273223a5b5d7d2c226d65746164617461223a7b7d2c227072696f72697479223a302e352c22636f6e6669726d4265666f72655374617274223a66616c73652c2261636365707461626c65537461747573436f646573223a5b7b226669727374223a3230302c226c617374223a3239397d5d2c226661696c4f6e485454504572726f72223a66616c73657d',NULL,0,1800000000000,1800000000000,NULL,NULL,1,1);
INSERT INTO task VALUES(4,1,4,'running',NULL,NULL,NULL,NULL,0.5,X'7b226b696e64223a22646f776e6c6f6164222c2272657175657374223a7b2275726c223a2268747470733a2f2f74686972642e6578616d706c652f77616974696e67222c226d6574686f64223a22474554222c2268656164657273223a5b5d2c2273656e73697469766548656164657273223a5b5d7d2c226d65746164617461223a7b7d2c227072696f72697479223a302e352c22636f6e6669726d4265666f72655374617274223a66616c73652c2261636365707461626c65537461747573436f646573223a5b7b226669727374223a3230302c226c617374223a3239397d5d2c226661696c4f6e485454504572726f72223a66616c73657d',NULL,0,1800000000000,1800000000000,NULL,NULL,1,1);
CREATE TABLE webhook_health (
    app INTEGER PRIMARY KEY,
    failing_since INTEGER,
    consecutive_failures INTEGER NOT NULL DEFAULT 0,
    trips INTEGER NOT NULL DEFAULT 0,
    open_until INTEGER
) STRICT;
CREATE TABLE webhook_secret (
    id INTEGER PRIMARY KEY,
    app INTEGER NOT NULL,
    secret BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER
) STRICT;
INSERT INTO webhook_secret VALUES(1,1,X'01340628db2ea0977a6fc0f37d122b99a9bb830d4fd99843f0efb8b57423b71e7238cb3f20a0ccc4fbe661d3e0d9ccf27dd2',1800000000000,NULL);
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
CREATE TABLE presence (
    session INTEGER NOT NULL,
    node TEXT NOT NULL,
    kind TEXT CHECK (kind = 'stream' OR kind = 'wait'),
    detached_at INTEGER,
    PRIMARY KEY (session, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE body_object (
    body INTEGER NOT NULL,
    position INTEGER NOT NULL,
    object_key TEXT NOT NULL,
    length INTEGER NOT NULL,
    PRIMARY KEY (body, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE held_connection (
    node TEXT NOT NULL,
    session INTEGER NOT NULL,
    origin TEXT NOT NULL,
    connections INTEGER NOT NULL,
    PRIMARY KEY (node, session, origin)
) STRICT, WITHOUT ROWID;
CREATE TABLE useless_file (
    node TEXT NOT NULL,
    path TEXT NOT NULL,
    PRIMARY KEY (node, path)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS "live" (
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
, set_version INTEGER, adopts TEXT) STRICT;
INSERT INTO live VALUES(2,1,1,1,2,'download','suspended',0.5,NULL,NULL,NULL,604800000,NULL,NULL,NULL,0,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO live VALUES(3,1,1,2,3,'download','queued',0.5,NULL,NULL,1800604800000,NULL,NULL,X'7b22617474656d707473223a7b22617474656d707473223a302c226661696c7572657353696e636550726f6772657373223a302c22686967686573744f6666736574223a302c22737461747573417474656d707473223a302c226e616d65417474656d707473223a302c227265737461727473223a302c226469676573744d69736d617463686573223a307d2c2264757261626c654f6666736574223a302c22726564697265637473223a5b5d2c227472616e73616374696f6e73223a5b5d2c22636f756e744f66427974657353656e74223a302c22636f756e744f6642797465735265636569766564223a302c226973436f6e6669726d6564223a66616c73652c2261757468656e7469636174696f6e223a5b5d7d',NULL,0,0,0,0,NULL,NULL,NULL,NULL,NULL,0,NULL,NULL);
INSERT INTO live VALUES(4,1,1,3,4,'download','awaitingAnswer',0.5,NULL,NULL,1800604800000,NULL,NULL,X'7b22617474656d707473223a7b22617474656d707473223a302c226661696c7572657353696e636550726f6772657373223a302c22686967686573744f6666736574223a302c22737461747573417474656d707473223a302c226e616d65417474656d707473223a302c227265737461727473223a302c226469676573744d69736d617463686573223a307d2c2264757261626c654f6666736574223a302c22726564697265637473223a5b5d2c227472616e73616374696f6e73223a5b5d2c22636f756e744f66427974657353656e74223a302c22636f756e744f6642797465735265636569766564223a302c226973436f6e6669726d6564223a66616c73652c2261757468656e7469636174696f6e223a5b5d7d',NULL,0,0,0,0,1,NULL,NULL,NULL,NULL,0,NULL,NULL);
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
INSERT INTO file_set VALUES(1,1,'set',X'7b226c61796f7574223a2276657273696f6e73222c226b656570223a332c226772616365223a333630302c226361636865506f6c696379223a2272656c6f6164526576616c69646174696e67436163686544617461227d',NULL,NULL,NULL,0,0,NULL,0,1800000000000,2);
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
CREATE TABLE IF NOT EXISTS "event" (
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
INSERT INTO event VALUES(1,1,'task.didFinishDownloading',1,1800000000000,X'31383032353932303030303030');
INSERT INTO event VALUES(1,2,'task.didFinishCollectingMetrics',1,1800000000000,NULL);
INSERT INTO event VALUES(1,3,'task.didComplete',1,1800000000000,X'312c302c302c302c30');
INSERT INTO event VALUES(1,4,'task.didReceiveChallenge',4,1800000000000,X'71');
CREATE TABLE cancellation (
    app INTEGER NOT NULL,
    session INTEGER NOT NULL,
    reason INTEGER,
    newest INTEGER NOT NULL,
    PRIMARY KEY (app, session)
) STRICT, WITHOUT ROWID;
CREATE TABLE origin_pause (
    app INTEGER NOT NULL,
    origin TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    ends_for_others_at INTEGER NOT NULL,
    PRIMARY KEY (app, origin)
) STRICT, WITHOUT ROWID;
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('app',1);
INSERT INTO sqlite_sequence VALUES('session',1);
INSERT INTO sqlite_sequence VALUES('task',4);
INSERT INTO sqlite_sequence VALUES('lane',3);
INSERT INTO sqlite_sequence VALUES('launch',1);
INSERT INTO sqlite_sequence VALUES('question',1);
INSERT INTO sqlite_sequence VALUES('credential',1);
INSERT INTO sqlite_sequence VALUES('body',1);
INSERT INTO sqlite_sequence VALUES('file_set',1);
CREATE INDEX app_next_launch ON app (next_launch_at, launch_turn) WHERE next_launch_at IS NOT NULL;
CREATE INDEX app_unsettled ON app (settled_launch) WHERE settled_launch IS NOT NULL;
CREATE INDEX api_key_app ON api_key (app, created_at, key_identifier);
CREATE INDEX api_key_expiry ON api_key (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX webhook_secret_app ON webhook_secret (app);
CREATE UNIQUE INDEX session_identifier ON session (app, identifier) WHERE forgotten = 0;
CREATE INDEX session_app ON session (app, forgotten);
CREATE INDEX session_forgotten ON session (id) WHERE forgotten = 1;
CREATE INDEX session_cause ON session (id) WHERE forgotten = 0 AND last_seq > acknowledged_seq;
CREATE INDEX session_invalid ON session (invalid_at) WHERE state = 'invalid' AND forgotten = 0;
CREATE INDEX session_discretionary ON session (app, discretionary, forgotten);
CREATE INDEX incarnation_forgotten ON incarnation (forgotten_at) WHERE forgotten_at IS NOT NULL;
CREATE UNIQUE INDEX task_number ON task (session, number);
CREATE UNIQUE INDEX task_client ON task (session, client_task_id) WHERE client_task_id IS NOT NULL;
CREATE INDEX task_group ON task (session, group_name, number) WHERE group_name IS NOT NULL;
CREATE INDEX task_outcome ON task (session, outcome, number) WHERE outcome <> 'succeeded';
CREATE INDEX task_completed ON task (session, completed_seq) WHERE completed_seq IS NOT NULL;
CREATE INDEX lane_queued ON lane (app, origin, served_at, id) WHERE queued > 0;
CREATE INDEX lane_session ON lane (session) WHERE queued > 0;
CREATE INDEX acknowledgement_contents ON acknowledgement (at) WHERE contents_expired = 0;
CREATE INDEX acknowledgement_events ON acknowledgement (at) WHERE events_dropped = 0;
CREATE INDEX acknowledgement_tasks ON acknowledgement (at) WHERE contents_expired = 1 AND events_dropped = 1;
CREATE INDEX content_kept ON content (session, seq) WHERE expired = 0;
CREATE INDEX content_expiry ON content (expires_at) WHERE expired = 0 AND expires_at IS NOT NULL;
CREATE INDEX content_file ON content (file) WHERE file IS NOT NULL;
CREATE INDEX body_expiry ON body (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX body_app ON body (app);
CREATE INDEX body_file ON body (file) WHERE file IS NOT NULL;
CREATE INDEX launch_due ON launch (state, due_at, app) WHERE due_at IS NOT NULL;
CREATE INDEX launch_queue ON launch (app, urgency, due_at) WHERE state = 'pending';
CREATE INDEX launch_fetch ON launch (created_at)     WHERE kind = 'app.performFetch' AND state = 'pending' AND attempts = 0;
CREATE INDEX launch_open ON launch (app, ended_at, id);
CREATE INDEX launch_ended ON launch (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX launch_app ON launch (app, id);
CREATE INDEX question_open ON question (session, state, seq);
CREATE UNIQUE INDEX question_space ON question (session, space) WHERE state = 'open' AND space IS NOT NULL;
CREATE INDEX question_deadline ON question (deadline) WHERE state = 'open';
CREATE INDEX question_releasing ON question (id) WHERE releasing = 1;
CREATE INDEX question_app ON question (app, id);
CREATE INDEX question_app_state ON question (app, state);
CREATE INDEX question_session ON question (session);
CREATE INDEX question_task ON question (task);
CREATE INDEX credential_app ON credential (app);
CREATE INDEX credential_session ON credential (session) WHERE session IS NOT NULL;
CREATE UNIQUE INDEX credential_space ON credential (app, coalesce(session, 0), space);
CREATE INDEX refresh_next ON refresh (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX resume_data_expiry ON resume_data (expires_at);
CREATE INDEX resume_data_file ON resume_data (file);
CREATE INDEX idempotency_age ON idempotency (created_at);
CREATE INDEX task_app ON task (app);
CREATE INDEX task_app_unfinished ON task (app, state) WHERE state <> 'completed';
CREATE INDEX task_app_outcome ON task (app, outcome) WHERE outcome <> 'succeeded';
CREATE INDEX task_app_group ON task (app, group_name) WHERE group_name IS NOT NULL;
CREATE INDEX task_app_client ON task (app, client_task_id) WHERE client_task_id IS NOT NULL;
CREATE INDEX bucket_upload_task ON bucket_upload (task);
CREATE INDEX bucket_upload_due ON bucket_upload (bucket, due_at);
CREATE INDEX bucket_upload_object ON bucket_upload (bucket, object_key);
CREATE INDEX launch_node ON launch (node) WHERE state = 'delivering';
CREATE INDEX presence_node ON presence (node);
CREATE INDEX presence_detached ON presence (detached_at) WHERE detached_at IS NOT NULL;
CREATE INDEX content_object ON content (object) WHERE object IS NOT NULL;
CREATE INDEX body_object_key ON body_object (object_key);
CREATE INDEX resume_data_app ON resume_data (app);
CREATE INDEX session_stall ON session (stall_check_at) WHERE stall_check_at IS NOT NULL;
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
CREATE INDEX content_digest ON content (app, digest) WHERE file IS NOT NULL OR object IS NOT NULL;
CREATE INDEX cached_app ON cached (app);
CREATE INDEX cached_selector ON cached (app, selector, id) WHERE selector IS NOT NULL;
CREATE INDEX cached_url ON cached (app, url) WHERE selector IS NOT NULL;
CREATE INDEX cached_used ON cached (app, used_at, id) WHERE selector IS NOT NULL;
CREATE INDEX cached_digest ON cached (app, digest) WHERE file IS NOT NULL OR object IS NOT NULL;
CREATE INDEX cached_file ON cached (file) WHERE file IS NOT NULL;
CREATE INDEX cached_object ON cached (object) WHERE object IS NOT NULL;
CREATE INDEX cache_bytes ON cache (bytes) WHERE app > 0;
CREATE INDEX flight_app ON flight (app);
CREATE UNIQUE INDEX flight_selector ON flight (app, selector) WHERE leader IS NOT NULL;
CREATE INDEX flight_leader ON flight (leader) WHERE leader IS NOT NULL;
CREATE INDEX flight_result ON flight (result) WHERE result IS NOT NULL;
CREATE INDEX flight_releasing ON flight (id) WHERE releasing = 1;
CREATE UNIQUE INDEX file_set_name ON file_set (app, name) WHERE forgotten = 0;
CREATE INDEX file_set_app ON file_set (app, id);
CREATE INDEX file_set_place ON file_set (place) WHERE place IS NOT NULL;
CREATE INDEX file_set_due ON file_set (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX set_version_set ON set_version (file_set, id);
CREATE UNIQUE INDEX set_version_name ON set_version (file_set, name) WHERE name IS NOT NULL AND removing = 0     AND state <> 'failed' AND state <> 'cancelled' AND state <> 'superseded';
CREATE INDEX set_version_session ON set_version (session);
CREATE INDEX set_version_due ON set_version (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX set_file_state ON set_file (version, state, path);
CREATE INDEX set_file_task ON set_file (task) WHERE task IS NOT NULL;
CREATE INDEX set_file_expected ON set_file (app, listed) WHERE listed IS NOT NULL AND state = 'kept';
CREATE INDEX set_file_digest ON set_file (app, digest) WHERE state = 'kept';
CREATE INDEX set_file_file ON set_file (file) WHERE file IS NOT NULL;
CREATE INDEX set_file_object ON set_file (object) WHERE object IS NOT NULL;
CREATE INDEX live_adopts ON live (adopts) WHERE adopts IS NOT NULL;
CREATE INDEX cached_small ON cached (app, digest) WHERE bytes IS NOT NULL;
CREATE INDEX content_indexed ON content (app, digest) WHERE indexed = 1;
CREATE INDEX origin_pause_end ON origin_pause (ends_at);
COMMIT;
PRAGMA user_version = 23;
