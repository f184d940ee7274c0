import Core
import Service

/// A task as its client knows it.
final class KnownTask {
    enum Wish { case no, asked, confirmed }

    var order: TaskOrder
    /// Where its bytes may come from: the last one is that of its present request.
    var resources: [Resource]
    let body: [UInt8]?
    var number: Int64?
    var cancel = Wish.no
    var isClaimed = false
    /// Whether the digest that the client expects is another one.
    let expectsOther: Bool

    init(_ order: TaskOrder, _ resource: Resource, body: [UInt8]?, expectsOther: Bool) {
        self.order = order
        resources = [resource]
        self.body = body
        self.expectsOther = expectsOther
    }

    var mayBeShort: Bool { resources.contains(where: \.mayBeShort) }

    /// Whether these bytes are a version of a resource.
    func has(digest: [UInt8]) -> Bool { resources.contains { $0.version(of: digest) != nil } }

    var name: String { order.specification.clientTaskId ?? "" }
    var isDownload: Bool { order.specification.kind == .download }
}
