/// The required state of an identifier when a session is opened.
package enum SessionCondition: Hashable, Sendable {
    case none
    /// A session exists.
    case exists
    /// The session exists at this revision.
    case isUnchanged(SessionID, revision: Int64)

    package func holds(for session: SessionRecord?) -> Bool {
        switch self {
        case .none: true
        case .exists: session != nil
        case .isUnchanged(let id, let revision): session?.id == id && session?.revision == revision
        }
    }
}
