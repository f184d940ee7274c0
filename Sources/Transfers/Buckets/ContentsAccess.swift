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
    /// Rung by a caller that met a fault which the operator has to fix.
    package let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    /// The fault with which the bucket refuses this node; nil if it does not, or was not tried yet.
    package var refusal: BucketFault? {
        state.withLock { if case .refused(let fault) = $0 { fault } else { nil } }
    }

    /// Whether tasks may begin here. False until the bucket was tried once.
    var isOpen: Bool {
        state.withLock { if case .open = $0 { true } else { false } }
    }

    /// Has the bucket tried again at once, if the operator has to fix the fault.
    package func note(_ fault: BucketFault) {
        if fault.isOperators { bell.ring() }
    }

    /// The change of the state through an attempt to write.
    package enum Change {
        case opened
        case refused(BucketFault)
        /// The first attempt failed for another reason, whose duration the tasks find out.
        case failed(BucketFault)
        case none
    }

    /// - Parameter fault: The fault of the attempt to write; nil if it succeeded.
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

/// A fault of the bucket of contents, as distinct from those of buckets that apps name.
package struct ContentsFault: Error {
    package let fault: BucketFault
}
