import Core
import HTTPServer
import Service
import Wire
import WireMapping

extension APIServer {
    /// Credentials that are used without a question. They are written and never read.
    var credentialRoutes: [Route] {
        let one = "/v1/credentials/{credentialIdentifier}"
        let filters = ["host", "port", "protocol", "realm", "authenticationMethod"]
        return [
            route("GET", "/v1/credentials", .read, query: Call.listing) { try await $0.listCredentials() },
            route("POST", "/v1/credentials", .write, body: .json) { try await $0.storeCredential() },
            route("DELETE", "/v1/credentials", .write, query: filters, body: .empty) {
                try await $0.deleteCredentials()
            },
            route("GET", one, .read) {
                let credential = try await $0.service.credential($0.parameter("credentialIdentifier"), app: $0.app)
                return .json(StoredCredential(credential))
            },
            route("DELETE", one, .write, body: .empty) {
                try await $0.service.deleteCredential($0.parameter("credentialIdentifier"), app: $0.app)
                return .nothing
            },
        ]
    }
}

extension Call {
    fileprivate func listCredentials() async throws -> HTTPResponse {
        let (app, span) = (try app, try span())
        return try await page(
            fetch: { try await service.credentials(of: app, span, after: $0, limit: $1) }, position: \.cursor,
            write: { StoredCredential($0.credential) })
    }

    fileprivate func storeCredential() async throws -> HTTPResponse {
        let creation = try read(CredentialCreation.self)
        guard let space = Core.ProtectionSpace(creation.protectionSpace) else {
            throw Problem(.invalidValue, "protectionSpace: There is no such authentication method.")
        }
        guard creation.credential.fits(creation.protectionSpace.authenticationMethod) else {
            throw JSONError.invalid(
                "\(creation.protectionSpace.authenticationMethod) needs another credential.", at: "/credential")
        }
        let kept = try await service.keepCredential(Core.Credential(creation.credential), for: space, app: app)
        return .json(
            StoredCredential(kept), status: 201, headers: [("Location", "/v1/credentials/\(kept.credentialId)")])
    }

    /// Deletes every credential whose protection space matches, if any.
    fileprivate func deleteCredentials() async throws -> HTTPResponse {
        guard let host = try queryText("host", .length(1...253)) else {
            throw Problem.query("host", "This parameter is missing.")
        }
        let port = try queryInteger("port", in: 1...65535)
        let scheme = try queryWord("protocol", ["http", "https"].map { ($0, $0) })
        let realm = try queryText("realm", .length(0...1024))
        let method = try queryWord(
            "authenticationMethod", Core.ProtectionSpace.Method.allCases.map { ($0.rawValue, $0) })
        let app = try app
        var cursor: Int64 = 0
        while true {
            let found = try await service.credentials(of: app, after: cursor, limit: 500)
            for (_, credential) in found {
                let space = credential.space
                guard space.host.canonicalHost == host.canonicalHost, port == nil || port == Int64(space.port),
                    scheme == nil || scheme == space.scheme, realm == nil || realm == space.realm,
                    method == nil || method == space.authenticationMethod
                else { continue }
                do {
                    try await service.deleteCredential(credential.credentialId, app: app)
                } catch DomainError.notFound {
                    // Another request has deleted it.
                }
            }
            guard found.count == 500, let last = found.last else { return .nothing }
            cursor = last.cursor
        }
    }
}
