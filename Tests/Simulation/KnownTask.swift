import Core
import Service

/// A client's record of a task.
final class KnownTask: @unchecked Sendable {
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

    /// The bytes that readers of the unfinished content may have seen, by the version of the bytes.
    var arrived: [Int64: Set<Source>] = [:]

    /// One version of one of the resources.
    struct Source: Hashable {
        let resource: Int
        let representation: Resource.Representation
    }

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

    /// The versions of the resources with these bytes at an offset.
    func sources(of bytes: [UInt8], at offset: Int) -> Set<Source> {
        var found: Set<Source> = []
        for (index, resource) in resources.enumerated() {
            for version in 1...resource.version {
                for variant in Set([resource.variant(variant), 0]) {
                    let representation = Resource.Representation(version: version, variant: variant)
                    let whole = resource.bytes(representation)
                    if whole.count >= offset + bytes.count, Array(whole[offset..<(offset + bytes.count)]) == bytes {
                        found.insert(Source(resource: index, representation: representation))
                    }
                }
            }
        }
        return found
    }

    var name: String { order.specification.clientTaskId ?? "" }
    var isDownload: Bool { order.specification.kind == .download }
}
