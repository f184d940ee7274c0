import Core

enum Caller: Hashable, Sendable {
    /// The route requires no key.
    case anyone
    case `operator`
    case app(AppID, keyIdentifier: String, scopes: Set<Scope>)

    /// The owner of idempotency keys and cursors: all keys of an app share them.
    var principal: String {
        switch self {
        case .anyone: "anyone"
        case .operator: "operator"
        case .app(let app, _, _): "app/\(app.rawValue)"
        }
    }

    /// The owner for fair turns of waiting requests; 0 for all callers without a key together.
    var owner: Int64 {
        switch self {
        case .anyone: 0
        case .operator: -1
        case .app(let app, _, _): app.rawValue
        }
    }

    /// The name by which requests are counted.
    var key: String {
        switch self {
        case .anyone: "anyone"
        case .operator: "operator"
        case .app(_, let keyIdentifier, _): "key/\(keyIdentifier)"
        }
    }
}

/// The callers that may use a route.
enum Access: Sendable {
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
