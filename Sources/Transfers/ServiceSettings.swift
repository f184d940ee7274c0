import Base
package import Buckets
package import Core

/// What the operator decides about transfers and storage.
package struct ServiceSettings: Sendable {
    /// Contents and bodies of at most so many bytes are kept in the database.
    package static let inlineLimit = 64 * 1024

    /// Bytes of a download that came and whose offset is not stored yet, at most. A kill shall cost no more than 8 MiB, of
    /// which one is for what the connection's buffers may hold besides.
    package static let maximumUnrecorded: Int64 = 7 << 20

    /// The data folder, absolute.
    package var dataFolder: String
    package var version: String
    /// What this node does, where many share the store.
    package var roles = Set(NodeRole.allCases)
    /// Where clients reach it.
    package var url = ""
    package var maximumTransfers = 256
    package var maximumTransfersPerHost = 32
    /// How long an app waits for a slot of its share before transfers of other apps make room for it.
    package var slotPatience = Duration.seconds(10)
    package var egress: EgressPolicy
    /// Names that tasks may use for `root`, and their folders.
    package var filesRoots: [String: String] = [:]
    /// Names that tasks may use for `bucket`, and who talks to them.
    package var buckets: [String: BucketClient] = [:]
    /// Where contents and bodies are that are too large for the database; nil for the data folder.
    package var contents: ContentsBucket?
    package var contentRetention = Duration.seconds(24 * 3600)
    package var unacknowledgedRetention = Duration.seconds(30 * 24 * 3600)
    /// Below this many free bytes new content waits and writes are refused.
    package var freeDiskFloor: Int64 = 1 << 30
    /// The longest content of a task that names no limit of its own.
    package var maximumContentLength: Int64 = 1 << 40
    /// The longest stored body.
    package var maximumBodyLength: Int64 = 1 << 40
    /// How long a question stays open.
    package var questionDeadline = Duration.seconds(24 * 3600)
    /// How long a session counts as attached after its client left.
    package var detachGrace = Duration.seconds(5)
    /// How busy the machine is, where that is known.
    package var load: @Sendable () -> Double? = { SystemLoad().current() }

    package init(dataFolder: String, version: String, egress: EgressPolicy) {
        self.dataFolder = dataFolder
        self.version = version
        self.egress = egress
    }
}
