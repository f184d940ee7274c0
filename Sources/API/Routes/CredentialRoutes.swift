import Core
import HTTPServer
import Mapping
import Service
import Wire

/// Secrets that are used without asking. They are written and never read.
struct CredentialRoutes {
    let server: APIServer

    var routes: [Route] {
        let filters = ["host", "port", "protocol", "realm", "authenticationMethod"]
        return [
            server.route("GET", "/v1/credentials", .read, query: ["limit", "cursor"]) { call in
                let app = try call.app
                return try await call.page(
                    fetch: { try await call.service.credentials(of: app, after: $0, limit: $1) }, position: \.cursor,
                    write: { StoredCredential($0.credential) })
            },
            server.route("POST", "/v1/credentials", .write, body: .json) { call in try await call.storeCredential() },
            server.route("DELETE", "/v1/credentials", .write, query: filters, body: .empty) { call in
                try await call.deleteCredentials()
            },
            server.route("GET", "/v1/credentials/{credentialIdentifier}", .read) { call in
                .json(StoredCredential(try await call.credential(call.parameter("credentialIdentifier"))))
            },
            server.route("DELETE", "/v1/credentials/{credentialIdentifier}", .write, body: .empty) { call in
                try await call.service.deleteCredential(call.parameter("credentialIdentifier"), app: call.app)
                return .nothing
            },
        ]
    }
}

extension Call {
    fileprivate func credential(_ credentialId: String) async throws -> CredentialRecord {
        try await service.credential(credentialId, app: app)
    }

    fileprivate func storeCredential() async throws -> HTTPResponse {
        let creation: CredentialCreation = try read()
        guard let space = Core.ProtectionSpace(creation.protectionSpace) else {
            throw Problem(.invalidValue, "protectionSpace: There is no such authentication method.")
        }
        guard creation.credential.fits(creation.protectionSpace.authenticationMethod) else {
            throw JSONError.invalid([
                Fault(
                    pointer: "/credential", code: .invalidValue,
                    detail: "\(creation.protectionSpace.authenticationMethod) needs another credential.")
            ])
        }
        let credentialId = try await service.keepCredential(
            Core.Credential(creation.credential), for: space, app: app)
        let stored = StoredCredential(try await credential(credentialId))
        return .json(stored, status: 201, headers: [("Location", "/v1/credentials/\(credentialId)")])
    }

    /// Forgets every credential whose protection space matches; none is no error.
    fileprivate func deleteCredentials() async throws -> HTTPResponse {
        guard let host = try queryText("host", upTo: 253) else {
            throw Problem.query("host", "This parameter is missing.")
        }
        let port = try queryInteger("port", in: 1...65535)
        let scheme = try queryWord("protocol", ["http", "https"].map { ($0, $0) })
        let realm = try queryText("realm", from: 0, upTo: 1024)
        let method = try queryWord(
            "authenticationMethod", Core.ProtectionSpace.Method.allCases.map { ($0.rawValue, $0) })
        let app = try app
        var cursor: Int64 = 0
        while true {
            let found = try await service.credentials(of: app, after: cursor, limit: 500)
            for (_, credential) in found {
                let space = credential.space
                guard space.host.equalsIgnoringASCIICase(host), port == nil || port == Int64(space.port),
                    scheme == nil || scheme == space.scheme, realm == nil || realm == space.realm,
                    method == nil || method == space.authenticationMethod
                else { continue }
                try await forget(credential, app)
            }
            guard found.count == 500, let last = found.last else { return .nothing }
            cursor = last.cursor
        }
    }

    private func forget(_ credential: CredentialRecord, _ app: AppID) async throws {
        do {
            try await service.deleteCredential(credential.credentialId, app: app)
        } catch DomainError.notFound {
            // Somebody else was faster.
        }
    }
}
