/// An app's answer to a launch, in the response of its webhook or by a call.
package enum LaunchAnswer: Hashable, Sendable {
    /// The app has handled the events up to this one; `nil` for the last event of the launch.
    case completed(through: Int64?)
    /// The app has fetched.
    case fetched(BackgroundRefresh.Result)

    /// Whether the answer is valid for a launch of this kind.
    package func fits(_ kind: LaunchKind) -> Bool {
        switch self {
        case .completed: kind != .performFetch
        case .fetched: kind == .performFetch
        }
    }
}
