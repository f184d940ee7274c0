/// Why a task is not moving, in words a person understands (`waitingFor` of a task).
package struct WaitingReason: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case connectivity, cellularAccess, expensiveAccess, constrainedAccess
        case power, cheapNetwork, unconstrainedNetwork, load, window
        case earliestBeginDate, answer, retry, originPause, capacity, disk
    }

    package var kind: Kind
    package var detail: String
    /// When it ends by itself, where that is known.
    package var until: Timestamp?
    /// What the app has to answer.
    package var questionId: String?

    package init(kind: Kind, detail: String, until: Timestamp? = nil, questionId: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.until = until
        self.questionId = questionId
    }
}
