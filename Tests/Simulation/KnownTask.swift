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
    /// The request's field `X-A`; 0 without one.
    let variant: Int
    /// When its creation was first requested, in milliseconds of the run.
    let askedAt: Int64

    init(
        _ order: TaskOrder, _ resource: Resource, body: [UInt8]?, expectsOther: Bool, variant: Int, askedAt: Int64
    ) {
        self.order = order
        self.variant = variant
        self.askedAt = askedAt
        resources = [resource]
        self.body = body
        self.expectsOther = expectsOther
    }

    var mayBeShort: Bool { resources.contains(where: \.mayBeShort) }

    /// Whether the bytes are a version of one of the resources.
    func has(digest: [UInt8]) -> Bool {
        // A changed request has no fields.
        resources.contains { $0.has(digest: digest, variant: variant) || $0.has(digest: digest, variant: 0) }
    }

    var name: String { order.specification.clientTaskId ?? "" }
    var isDownload: Bool { order.specification.kind == .download }
}
