import Base
import Buckets
import Core
import Files
import Glibc

/// Fetches bytes from the bucket of contents for transfers that send them, whose threads must not block.
///
/// The bytes in flight are bounded by the buffers of the transfers.
package final class ObjectFetcher: Sendable {
    private struct Order: Sendable {
        var objects: [StoredObject]
        var range: Range<Int64>
        var then: @Sendable (Result<[UInt8], SystemError>) -> Void
    }

    /// The bucket is out of reach: an error that no file has, so that the two are never confused.
    static let isAway = EHOSTDOWN
    /// The bucket refuses this node. No file has this error either.
    static let isRefused = EKEYREJECTED

    private let client: BucketClient
    private let access: ContentsAccess
    private let clock: Clock
    private let log: Log
    private let inbox: Inbox<Order>

    init(_ client: BucketClient, _ access: ContentsAccess, clock: Clock, log: Log) {
        self.client = client
        self.access = access
        self.clock = clock
        self.log = log
        inbox = Inbox(clock: clock)
    }

    /// A closure that fetches bytes of consecutive objects. Without a fetcher there is no such bucket.
    static func fetching(_ objects: [StoredObject], _ fetcher: ObjectFetcher?) -> Fetching {
        { range, then in
            guard let fetcher else { return then(.failure(SystemError("read", errno: Self.isAway))) }
            fetcher.inbox.tell(Order(objects: objects, range: range, then: then))
        }
    }

    /// Runs until it is cancelled.
    package func run() async {
        await withDiscardingTaskGroup { group in
            while !Task.isCancelled {
                for order in inbox.take() { group.addTask { await self.carryOut(order) } }
                _ = await inbox.bell.wait(until: clock.monotonic() + 60_000)
            }
        }
    }

    private func carryOut(_ order: Order) async {
        do throws(BucketFault) {
            order.then(.success(try await order.objects.bytes(order.range, client)))
        } catch {
            log.warning("a body could not be read", ("code", error.code), ("message", error.message))
            access.note(error)
            order.then(.failure(SystemError("read", errno: Self.errno(of: error))))
        }
    }

    private static func errno(of fault: BucketFault) -> Int32 {
        if fault.isOperators { return isRefused }
        return fault.remedy == .later ? isAway : ENOENT
    }
}
