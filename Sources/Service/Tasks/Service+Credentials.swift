import Base
package import Core
import Store

/// Credentials that apps leave with the service.
extension Service {
    package func keepCredential(
        _ credential: Credential, for space: ProtectionSpace, app: AppID
    ) async throws -> String {
        let credentialId = Identifier.make(prefix: "cred_")
        var credential = credential
        credential.usesDigest = space.authenticationMethod == .digest
        try await store.keep(
            credential, for: space, app: app, session: nil, credentialId: credentialId, at: clock.now)
        inbox.tell(.appChanged(app))
        return credentialId
    }

    package func credentials(
        of app: AppID, _ span: ListSpan = ListSpan(), after cursor: Int64, limit: Int
    ) async throws -> [(cursor: Int64, credential: CredentialRecord)] {
        try await store.credentials(of: app, span, after: cursor, limit: limit)
    }

    package func credential(_ credentialId: String, app: AppID) async throws -> CredentialRecord {
        try await store.credential(credentialId, app: app)
    }

    package func deleteCredential(_ credentialId: String, app: AppID) async throws {
        try await store.deleteCredential(credentialId, app: app)
    }
}
