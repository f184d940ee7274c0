/// The reason for which a task makes no progress, in plain words (`waitingFor` of a task).
package struct WaitingReason: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case connectivity, cellularAccess, expensiveAccess, constrainedAccess
        case power, cheapNetwork, unconstrainedNetwork, load, window
        case earliestBeginDate, answer, retry, originPause, capacity, disk
    }

    package var kind: Kind
    package var detail: String
    /// When the reason ends by itself, if that is known.
    package var until: Timestamp?
    /// The question that the app has to answer, if any.
    package var questionId: String?

    package init(kind: Kind, detail: String, until: Timestamp? = nil, questionId: String? = nil) {
        self.kind = kind
        self.detail = detail
        self.until = until
        self.questionId = questionId
    }
}
