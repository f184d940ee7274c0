package import Base
package import Buckets
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
    package let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// Why the bucket refuses this node; nil where it does not, or was not tried yet.
    package var refusal: BucketFault? {
        state.withLock { if case .refused(let fault) = $0 { fault } else { nil } }
    }

    /// Whether tasks may begin here. Not before the bucket was tried once.
    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// Has the bucket tried again at once, where the operator is at fault.
    package func note(_ fault: BucketFault) {
        if fault.isOperators { bell.ring() }
    }

    /// What an attempt to write changes.
    package enum Change {
        case opened
        case refused(BucketFault)
        /// The first attempt failed otherwise. The tasks find out how long that lasts.
        case failed(BucketFault)
        case none
    }

    /// - Parameter fault: Why the attempt to write failed; nil where it did not.
    package func tried(_ fault: BucketFault?) -> Change {
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
package struct ContentsFault: Error {
    package let fault: BucketFault
}
