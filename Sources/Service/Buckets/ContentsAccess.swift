import Base
import Buckets
import Core
import Store

/// Whether the bucket of contents lets this node write, as far as is known.
package final class ContentsAccess: Sendable {
    private enum State {
        /// Not tried yet.
        case unknown
        case open
        /// Only the operator can change this.
        case refused(BucketFault)
    }

    private let state = Locked(State.unknown)
    /// Rung by a caller that met a fault which the operator has to mend.
    fileprivate let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// Why the bucket refuses this node; nil where it does not, or was not tried yet.
    var refusal: BucketFault? {
        state.withLock { if case .refused(let fault) = $0 { fault } else { nil } }
    }

    /// Whether tasks may begin here. Not before the bucket was tried once.
    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// Has the bucket tried again at once, where the operator is at fault.
    func note(_ fault: BucketFault) {
        if fault.isOperators { bell.ring() }
    }

    /// What an attempt to write changes.
    fileprivate enum Change {
        case opened
        case refused(BucketFault)
        /// The first attempt failed otherwise. The tasks find out how long that lasts.
        case failed(BucketFault)
        case none
    }

    /// - Parameter fault: Why the attempt to write failed; nil where it did not.
    fileprivate func tried(_ fault: BucketFault?) -> Change {
        state.withLock { state in
            switch (state, fault) {
            case (.open, nil): return .none
            case (_, nil):
                state = .open
                return .opened
            case (.refused, _?): return .none
            case (_, let fault?) where fault.isOperators:
                state = .refused(fault)
                return .refused(fault)
            case (.unknown, let fault?):
                state = .open
                return .failed(fault)
            case (.open, _?): return .none
            }
        }
    }
}

/// A fault of the bucket of contents, told from those of buckets that apps name.
struct ContentsFault: Error {
    let fault: BucketFault
}

extension Service {
    /// Milliseconds between two attempts while the bucket refuses this node.
    private static let refusalRound: Int64 = 2000

    /// Finds out whether the bucket of contents takes objects: at the start, and whenever a caller met a fault that the
    /// operator has to mend. While it refuses this node, nothing is claimed here.
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
        let log = log.with("bucket", Store.contentsBucket)
        switch change {
        case .none: break
        case .opened: log.info("the bucket takes objects")
        case .failed(let fault):
            log.error("the bucket cannot be used", ("code", fault.code), ("message", fault.message))
        case .refused(let fault):
            log.error(
                "the bucket refuses this node, which claims nothing until it is let in", ("code", fault.code),
                ("message", fault.message))
        }
    }
}
