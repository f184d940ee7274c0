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

    /// A stored credential, without its secret.
    public func credential(_ credentialIdentifier: String) async throws -> StoredCredential {
        try await send("GET", ["v1", "credentials", credentialIdentifier])
    }

    /// Forgets all credentials of a host, or of the protection spaces there that match what else is given.
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
