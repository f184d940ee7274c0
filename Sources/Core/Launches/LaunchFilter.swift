/// Which launches of an app are meant. Nil matches all.
package struct LaunchFilter: Hashable, Sendable {
    package var createdAfter: Timestamp?
    package var createdBefore: Timestamp?
    package var session: String?
    package var state: LaunchState.Phase?

    package init() {}
}
