/// A filter for tasks, which must match every given member.
package struct TaskFilter: Hashable, Sendable {
    /// Any of these states; empty for all.
    package var states: Set<TaskState>
    /// Any of these outcomes; empty for all, and for tasks without one.
    package var outcomes: Set<Outcome>
    package var group: String?
    package var clientTaskId: String?
    /// `nil` for every `taskIdentifier`.
    package var numbers: Set<Int64>?

    package init(
        states: Set<TaskState> = [], outcomes: Set<Outcome> = [], group: String? = nil, clientTaskId: String? = nil,
        numbers: Set<Int64>? = nil
    ) {
        self.states = states
        self.outcomes = outcomes
        self.group = group
        self.clientTaskId = clientTaskId
        self.numbers = numbers
    }

    /// Filters with at most one state and one outcome, of which a selected task matches exactly one, so that the store
    /// can read each by an index. Empty if no task can match: only completed tasks have an outcome.
    package var alternatives: [Alternative] {
        func alternative(_ state: TaskState?, _ outcome: Outcome?) -> Alternative {
            Alternative(state: state, outcome: outcome, group: group, clientTaskId: clientTaskId)
        }
        if !outcomes.isEmpty {
            guard states.isEmpty || states.contains(.completed) else { return [] }
            return outcomes.map { alternative(.completed, $0) }
        }
        guard !states.isEmpty, states.count < TaskState.allCases.count else { return [alternative(nil, nil)] }
        return states.map { alternative($0, nil) }
    }

    /// A filter with at most one state and one outcome. `nil` matches all.
    package struct Alternative: Hashable, Sendable {
        package var state: TaskState?
        package var outcome: Outcome?
        package var group: String?
        package var clientTaskId: String?
    }
}
