package import Base
package import Buckets
package import Core
import Formats
import Store
package import TransferEngine

/// The bucket in which all nodes keep contents and bodies that are too large for the database.
package struct ContentsBucket: Sendable {
    package let client: BucketClient
    /// The prefix of the keys of one service, so that no other service sweeps its objects.
    package let folder: String
    package let access: ContentsAccess
    package let fetcher: ObjectFetcher
    let clock: Clock
    let readers = ObjectReaders()
    package let writers = BodyWriters()
    /// For all parts that are written into buckets, those of contents in flight included.
    package let partMemory = PartMemory()
    /// Without a task to continue it, the upload of a body is kept for this long after its node last renewed it. The
    /// clocks of nodes may differ by some seconds.
    package var bodyLease = Duration.seconds(60)

    package init(_ client: BucketClient, folder: String, clock: Clock, log: Log) {
        self.client = client
        self.folder = folder
        self.clock = clock
        access = ContentsAccess(clock: clock)
        fetcher = ObjectFetcher(client, access, clock: clock, log: log)
    }

    /// A key that was never used.
    package func newKey(of task: TaskID) -> String { newKey("contents", "\(task.rawValue)") }

    package func newKey(ofBody publicId: String) -> String { newKey("bodies", publicId) }

    private func newKey(_ area: String, _ name: String) -> String {
        "\(folder)/\(area)/\(name)-\(RandomBytes.make(12).hexadecimal)"
    }
}

extension ServiceSettings {
    /// The client of a bucket: of one that apps name, or of the bucket of contents.
    func client(of bucket: String) -> BucketClient? {
        bucket == Store.Files.contentsBucket ? contents?.client : buckets[bucket]
    }
}

extension ObjectDestination {
    /// An object in the bucket of contents. Its key is new, so that no object is replaced.
    init(content key: String) {
        self.init()
        bucket = Store.Files.contentsBucket
        self.key = key
        replace = true
    }

    /// Whether the service keeps the object for its apps.
    var isContent: Bool { bucket == Store.Files.contentsBucket }
}
