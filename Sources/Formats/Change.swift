/// The change of one member in a `PATCH`.
public enum Change<Value> {
    /// The member is absent: the value stays.
    case unchanged
    /// The member is `null`: the value is removed.
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

    /// The new value, if there is one.
    public var newValue: Value? { if case .set(let value) = self { value } else { nil } }

    /// The value after the change, which may be `nil`; `nil` for ``unchanged``.
    public var update: Value?? { if case .unchanged = self { nil } else { .some(newValue) } }
}

extension Change: Sendable where Value: Sendable {}
extension Change: Equatable where Value: Equatable {}
extension Change: Hashable where Value: Hashable {}
