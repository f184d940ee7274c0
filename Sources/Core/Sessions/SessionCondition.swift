/// What must be so of an identifier where a session is opened by it.
package enum SessionCondition: Hashable, Sendable {
    case none
    /// There is a session.
    case exists
    /// The session that was seen, at its revision.
    case isUnchanged(SessionID, revision: Int64)

    package func holds(for session: SessionRecord?) -> Bool {
        switch self {
        case .none: true
        case .exists: session != nil
        case .isUnchanged(let id, let revision): session?.id == id && session?.revision == revision
        }
    }
}
