import Core
import Service

/// A client's record of a task.
final class KnownTask {
    enum Wish { case no, asked, confirmed }

    var order: TaskOrder
    /// The possible sources of its bytes; the last one is that of its present request.
    var resources: [Resource]
    let body: [UInt8]?
    var number: Int64?
    var cancel = Wish.no
    var isClaimed = false
    /// Whether the client expects a different digest.
    let expectsOther: Bool

    init(_ order: TaskOrder, _ resource: Resource, body: [UInt8]?, expectsOther: Bool) {
        self.order = order
        resources = [resource]
        self.body = body
        self.expectsOther = expectsOther
    }

    var mayBeShort: Bool { resources.contains(where: \.mayBeShort) }

    /// Whether the bytes are a version of one of the resources.
    func has(digest: [UInt8]) -> Bool { resources.contains { $0.version(of: digest) != nil } }

    var name: String { order.specification.clientTaskId ?? "" }
    var isDownload: Bool { order.specification.kind == .download }
}
