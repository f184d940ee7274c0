public import Wire

/// Credentials that the service stores and uses without a question.
extension Client {
    /// A page of the stored credentials, without their secrets.
    public func credentials(cursor: String? = nil, limit: Int = 100) async throws -> Page<StoredCredential> {
        try await page(["v1", "credentials"], cursor, limit)
    }

    /// Stores a credential, which replaces that of the same protection space.
    public func storeCredential(
        _ credential: Credential, for space: ProtectionSpace
    ) async throws -> StoredCredential {
        let creation = CredentialCreation(protectionSpace: space, credential: credential)
        return try await send("POST", ["v1", "credentials"], body: creation.jsonBytes)
    }

    /// Deletes a credential.
    public func deleteCredential(_ credentialIdentifier: String) async throws {
        _ = try await exchange("DELETE", ["v1", "credentials", credentialIdentifier])
    }

    /// A stored credential, without its secret.
    public func credential(_ credentialIdentifier: String) async throws -> StoredCredential {
        try await send("GET", ["v1", "credentials", credentialIdentifier])
    }

    /// Deletes all credentials of a host, or those of its protection spaces that match the other parameters.
    public func deleteCredentials(
        ofHost host: String, port: Int? = nil, protocol: String? = nil, realm: String? = nil,
        authenticationMethod: AuthenticationMethod? = nil
    ) async throws {
        let filters = [
            "host": host, "port": port.map { String($0) }, "protocol": `protocol`, "realm": realm,
            "authenticationMethod": authenticationMethod?.rawValue,
        ]
        _ = try await exchange("DELETE", ["v1", "credentials"], query: filters.compactMapValues { $0 })
    }
}
