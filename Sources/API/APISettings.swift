package struct APISettings: Sendable {
    /// A key that does not contain its identifier, such as the key of `--dev`. It is valid while the store has a record
    /// with the identifier and the hash.
    package struct LiteralKey: Sendable {
        package var hash: [UInt8]
        package var keyIdentifier: String

        /// - Parameter hash: SHA-256 of the whole key.
        package init(hash: [UInt8], keyIdentifier: String) {
            self.hash = hash
            self.keyIdentifier = keyIdentifier
        }
    }

    /// SHA-256 of the admin key at the start.
    package var adminKeyHash: [UInt8]
    package var literalKeys: [LiteralKey] = []
    /// 32 random bytes stored in the data folder, which make cursors unforgeable.
    package var cursorKey: [UInt8]
    /// Only a `Host` that names this machine is served.
    package var isDevelopment = false
    /// Origins whose scripts may call the API, as browsers write them; `*` for all.
    package var corsOrigins: [String] = []
    /// Whether the page at `/` and the reference at `/docs` are served.
    package var servesPage = true
    /// The maximum number of requests per second of one key; nil for no limit.
    package var rateLimit: Int?
    /// The maximum number of held requests of one key.
    package var heldRequestsPerKey = 1024
    /// The maximum length of a JSON body in bytes.
    package var bodyLimit = 1 << 20
    /// The maximum length of the JSON body of a batch in bytes.
    package var batchLimit = 32 << 20
    /// The maximum number of bytes that all JSON bodies in flight hold together.
    package var sharedBodyBytes = 256 << 20
    /// The time limit for receiving a JSON body.
    package var bodyDeadline = Duration.seconds(30)
    /// The maximum number of tasks that one search examines; its `nextCursor` leads to the rest.
    package var searchedTasks = 10_000
    /// The silence on an event stream after which a comment is sent.
    package var heartbeat = Duration.seconds(15)

    package init(adminKeyHash: [UInt8], cursorKey: [UInt8]) {
        self.adminKeyHash = adminKeyHash
        self.cursorKey = cursorKey
    }
}
