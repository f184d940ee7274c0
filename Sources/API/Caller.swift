import Core

/// Who makes a request.
enum Caller: Hashable, Sendable {
    /// The route asks for no key.
    case anyone
    /// The holder of the admin key.
    case `operator`
    case app(AppID, keyIdentifier: String, scopes: Set<Scope>)

    /// Whose idempotency keys and cursors they are: all keys of an app share them.
    var principal: String {
        switch self {
        case .anyone: "anyone"
        case .operator: "operator"
        case .app(let app, _, _): "app/\(app.rawValue)"
        }
    }

    /// Who has turns of their own where requests wait; 0 for everybody together who has no key.
    var owner: Int64 {
        switch self {
        case .anyone: 0
        case .operator: -1
        case .app(let app, _, _): app.rawValue
        }
    }

    /// What requests are counted by.
    var key: String {
        switch self {
        case .anyone: "anyone"
        case .operator: "operator"
        case .app(_, let keyIdentifier, _): "key/\(keyIdentifier)"
        }
    }
}

/// Who may use a route.
enum Access: Sendable {
    /// Everybody, without a key.
    case open
    case `operator`
    /// A key of an app that has one of these scopes.
    case app(Set<Scope>)

    static let read = Access.app([.sessionsRead])
    static let write = Access.app([.sessionsWrite])
    static let events = Access.app([.events])
    static let readOrEvents = Access.app([.sessionsRead, .events])
    static let ownApp = Access.app([.app])
}
