import Base
import Buckets
import Core
import Store
import Transfers

extension Service {
    /// Milliseconds between two attempts while the bucket refuses this node.
    private static let refusalRound: Int64 = 2000

    /// Checks whether the bucket of contents accepts objects: at the start, and after each fault that the operator has
    /// to fix. While the bucket refuses this node, nothing is claimed here.
    func watchContents() async {
        guard let contents = settings.contents else { return }
        let access = contents.access
        while !Task.isCancelled {
            var fault: BucketFault?
            do throws(BucketFault) { try await contents.client.tryToWrite() } catch { fault = error }
            guard !Task.isCancelled else { return }
            log(access.tried(fault))
            inbox.tell(.queued)
            await access.bell.wait(until: access.refusal == nil ? nil : clock.monotonic() + Self.refusalRound)
        }
    }

    private func log(_ change: ContentsAccess.Change) {
        let log = log.with("bucket", Store.Files.contentsBucket)
        switch change {
        case .none: break
        case .opened: log.info("the bucket accepts objects")
        case .failed(let fault):
            log.error("the bucket cannot be used", ("code", fault.code), ("message", fault.message))
        case .refused(let fault):
            log.error(
                "the bucket refuses this node, which claims no task until it has access", ("code", fault.code),
                ("message", fault.message))
        }
    }
}
