/// A filter for an app's launches. `nil` matches all.
package struct LaunchFilter: Hashable, Sendable {
    package var createdAfter: Timestamp?
    package var createdBefore: Timestamp?
    package var session: String?
    /// Any of these states; empty for all.
    package var states: Set<LaunchState.Phase> = []

    package init() {}
}
