/// A stored credential without its secret.
package struct CredentialRecord: Sendable, Hashable {
    package var credentialId: String
    package var space: ProtectionSpace
    package var user: String?
    package var session: SessionID?
    package var createdAt: Timestamp

    package init(
        credentialId: String, space: ProtectionSpace, user: String?, session: SessionID?, createdAt: Timestamp
    ) {
        self.credentialId = credentialId
        self.space = space
        self.user = user
        self.session = session
        self.createdAt = createdAt
    }
}
