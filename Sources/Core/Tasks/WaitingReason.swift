/// The reason for which a task makes no progress, in plain words (`waitingFor` of a task).
package struct WaitingReason: Hashable, Sendable {
    package enum Kind: String, Hashable, Sendable, CaseIterable {
        case connectivity, cellularAccess, expensiveAccess, constrainedAccess
        case power, cheapNetwork, unconstrainedNetwork, load, window
        case earliestBeginDate, answer, retry, originPause, capacity, disk, sameTransfer

        /// Whether the network, as the operator declares it, is not one that the task may use.
        package var isConnectivity: Bool {
            switch self {
            case .connectivity, .cellularAccess, .expensiveAccess, .constrainedAccess: true
            default: false
            }
        }
    }

    package var kind: Kind
    package var detail: String
    /// When the reason ends by itself, if that is known.
    package var until: Timestamp?
    /// The question that the app has to answer, if any.
    package var questionId: String?
    /// The task whose transfer this task waits for, if any.
    package var leader: Leader?

    package struct Leader: Hashable, Sendable {
        package var task: TaskID
        package var number: Int64
        package var session: String

        package init(task: TaskID, number: Int64, session: String) {
            self.task = task
            self.number = number
            self.session = session
        }
    }

    package init(
        kind: Kind, detail: String, until: Timestamp? = nil, questionId: String? = nil,
        leader: Leader? = nil
    ) {
        self.kind = kind
        self.detail = detail
        self.until = until
        self.questionId = questionId
        self.leader = leader
    }
}
