/// Which tasks of a session are meant. Nil matches all.
package struct TaskFilter: Hashable, Sendable {
    package var state: TaskState?
    package var outcome: Outcome?
    package var group: String?
    package var clientTaskId: String?

    package init(
        state: TaskState? = nil, outcome: Outcome? = nil, group: String? = nil, clientTaskId: String? = nil
    ) {
        self.state = state
        self.outcome = outcome
        self.group = group
        self.clientTaskId = clientTaskId
    }
}
