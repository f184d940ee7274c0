/// What a `PATCH` says about one member.
public enum Change<Value> {
    /// The member is absent: leave it as it is.
    case unchanged
    /// The member is `null`: take the value away.
    case clear
    /// The member has a new value.
    case set(Value)

    /// The value after the change.
    public func applied(to current: Value?) -> Value? {
        switch self {
        case .unchanged: current
        case .clear: nil
        case .set(let value): value
        }
    }

    /// The value that was set, if one was.
    public var newValue: Value? { if case .set(let value) = self { value } else { nil } }

    /// The value after the change, which may be none; `nil` where nothing changes.
    public var update: Value?? { if case .unchanged = self { nil } else { .some(newValue) } }
}

extension Change: Sendable where Value: Sendable {}
extension Change: Equatable where Value: Equatable {}
extension Change: Hashable where Value: Hashable {}
