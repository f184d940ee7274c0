/// What an app answers to a launch, with the 2xx of its webhook or by a call.
package enum LaunchAnswer: Hashable, Sendable {
    /// It has handled the events through this one, or through the last that the launch told of.
    case completed(through: Int64?)
    /// It has fetched.
    case fetched(BackgroundRefresh.Result)

    /// Whether a launch of this kind can be answered so.
    package func fits(_ kind: LaunchKind) -> Bool {
        switch self {
        case .completed: kind != .performFetch
        case .fetched: kind == .performFetch
        }
    }
}
