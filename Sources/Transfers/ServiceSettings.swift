import Base
package import Buckets
package import Core

/// The operator's settings for transfers and storage.
package struct ServiceSettings: Sendable {
    /// The maximum number of bytes of a content or body that is kept in the database.
    package static let inlineLimit = 64 * 1024

    /// The maximum number of bytes of a download whose offset is not stored yet. A kill shall cost at most 8 MiB, of
    /// which one is for the connection's buffers.
    package static let maximumUnrecorded: Int64 = 7 << 20

    /// The data folder, absolute.
    package var dataFolder: String
    package var version: String
    /// The roles of this node, if several share the store.
    package var roles = Set(NodeRole.allCases)
    /// The public URL of the service.
    package var url = ""
    package var maximumTransfers = 256
    package var maximumTransfersPerHost = 32
    /// How long an app waits for a slot of its share before transfers of other apps are interrupted for it.
    package var slotPatience = Duration.seconds(10)
    package var egress: EgressPolicy
    /// The names that tasks may use for `root`, and their folders.
    package var filesRoots: [String: String] = [:]
    /// The names that tasks may use for `bucket`, and their clients.
    package var buckets: [String: BucketClient] = [:]
    /// The bucket for contents and bodies that are too large for the database; nil for the data folder.
    package var contents: ContentsBucket?
    package var contentRetention = Duration.seconds(24 * 3600)
    package var unacknowledgedRetention = Duration.seconds(30 * 24 * 3600)
    /// Bytes that the caches of all apps may hold together; 0 for none.
    package var cacheCapacity: Int64 = 10 << 30
    /// Below this number of free bytes, new content waits and writes are refused.
    package var freeDiskFloor: Int64 = 1 << 30
    /// The maximum length of the content of a task without a limit of its own.
    package var maximumContentLength: Int64 = 1 << 40
    /// The maximum length of a stored body.
    package var maximumBodyLength: Int64 = 1 << 40
    /// How long a question may remain unanswered.
    package var questionDeadline = Duration.seconds(24 * 3600)
    /// How long a session counts as attached after its last client detached.
    package var detachGrace = Duration.seconds(5)
    /// The load of the machine, if it is known.
    package var load: @Sendable () -> Double? = { SystemLoad().current() }

    package init(dataFolder: String, version: String, egress: EgressPolicy) {
        self.dataFolder = dataFolder
        self.version = version
        self.egress = egress
    }
}
