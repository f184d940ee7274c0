import Base
package import Core
import Store
import Transfers

/// Credentials that apps store with the service.
extension Service {
    /// Stores a credential of the app, in place of the one for the same protection space.
    ///
    /// - Returns: The stored credential. Another request may replace or delete it before this one is answered.
    package func keepCredential(
        _ credential: Credential, for space: ProtectionSpace, app: AppID
    ) async throws -> CredentialRecord {
        let (credentialId, now) = (Identifier.make(prefix: "cred_"), clock.now)
        var credential = credential
        credential.usesDigest = space.authenticationMethod == .digest
        try await store.questions.keep(
            credential, for: space, app: app, session: nil, credentialId: credentialId, at: now)
        inbox.tell(.appChanged(app))
        return CredentialRecord(
            credentialId: credentialId, space: space, user: credential.user, session: nil, createdAt: now)
    }

    package func credentials(
        of app: AppID, _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, credential: CredentialRecord)] {
        try await store.questions.credentials(of: app, span, after: cursor, limit: limit)
    }

    package func credential(_ credentialId: String, app: AppID) async throws -> CredentialRecord {
        try await store.questions.credential(credentialId, app: app)
    }

    package func deleteCredential(_ credentialId: String, app: AppID) async throws {
        try await store.questions.deleteCredential(credentialId, app: app)
    }
}
