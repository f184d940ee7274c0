package import Core

/// What the operator decides about the API.
package struct APISettings: Sendable {
    /// A key that is written in the configuration instead of the store, such as that of `--dev`.
    package struct LiteralKey: Sendable {
        package var hash: [UInt8]
        package var app: AppID
        package var keyIdentifier: String

        /// - Parameter hash: SHA-256 of the whole key.
        package init(hash: [UInt8], app: AppID, keyIdentifier: String) {
            self.hash = hash
            self.app = app
            self.keyIdentifier = keyIdentifier
        }
    }

    /// SHA-256 of the operator's key at the start.
    package var adminKeyHash: [UInt8]
    package var literalKeys: [LiteralKey] = []
    /// 32 random bytes kept in the data folder, which make cursors unforgeable.
    package var cursorKey: [UInt8]
    /// Only a `Host` that names this machine is served.
    package var isDevelopment = false
    /// Origins whose scripts may call, as browsers write them; `*` for all.
    package var corsOrigins: [String] = []
    /// The page at `/` and the reference at `/docs` are served.
    package var servesPage = true
    /// Requests a second that one key may make; nil for any number.
    package var rateLimit: Int?
    /// Requests that one key may have waiting at a time.
    package var heldRequestsPerKey = 1024
    /// The longest JSON body in bytes.
    package var bodyLimit = 1 << 20
    /// The longest JSON body of a batch in bytes.
    package var batchLimit = 32 << 20
    /// Bytes that all JSON bodies in flight may have together.
    package var sharedBodyBytes = 256 << 20
    /// How long a JSON body may take to arrive.
    package var bodyDeadline = Duration.seconds(30)
    /// Tasks that one search may examine; its `nextCursor` leads to the rest.
    package var searchedTasks = 10_000
    /// Silence on an event stream after which a comment is sent.
    package var heartbeat = Duration.seconds(15)

    package init(adminKeyHash: [UInt8], cursorKey: [UInt8]) {
        self.adminKeyHash = adminKeyHash
        self.cursorKey = cursorKey
    }
}
