/// Which launches of an app are meant. Nil matches all.
package struct LaunchFilter: Hashable, Sendable {
    package var createdAfter: Timestamp?
    package var createdBefore: Timestamp?
    package var session: String?
    /// Any of them; empty for every state.
    package var states: Set<LaunchState.Phase> = []

    package init() {}
}
