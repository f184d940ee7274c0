public import Wire

/// Credentials that the service keeps and uses without asking.
extension Client {
    /// A page of the stored credentials, without their secrets.
    public func credentials(cursor: String? = nil, limit: Int = 100) async throws -> Page<StoredCredential> {
        try await page(["v1", "credentials"], cursor, limit)
    }

    /// Stores a credential, in place of the one for the same protection space.
    public func storeCredential(
        _ credential: Credential, for space: ProtectionSpace
    ) async throws -> StoredCredential {
        let creation = CredentialCreation(protectionSpace: space, credential: credential)
        return try await send("POST", ["v1", "credentials"], body: creation.jsonBytes)
    }

    /// Forgets a credential.
    public func deleteCredential(_ credentialIdentifier: String) async throws {
        _ = try await exchange("DELETE", ["v1", "credentials", credentialIdentifier])
    }
}
