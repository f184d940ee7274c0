import TestSupport

/// nginx with TLS and HTTP/2, which reports whether the client had a known certificate.
final class TLSOrigin: Sendable {
    static let isAvailable = Nginx.isAvailable

    private let nginx: Nginx

    /// - Parameters:
    ///   - name: The certificate's subject alternative name, `IP:127.0.0.1` or `DNS:…`.
    ///   - validity: The begin and end of the validity, as `YYYYMMDDHHMMSSZ`; `nil` for two days from now.
    ///   - protocols: TLS versions in nginx's words.
    ///   - settings: More lines for nginx's `server` block.
    init(
        name: String = "IP:127.0.0.1", validity: (from: String, until: String)? = nil,
        protocols: String = "TLSv1.2 TLSv1.3", settings: String = ""
    ) async throws {
        let client = """
            ssl_client_certificate FOLDER/client.pem; ssl_verify_client optional;
            location = /client { return 200 "$ssl_client_verify"; }
            """
        nginx = try await Nginx("\(client) \(settings)", protocols: protocols, name: name, validity: validity)
    }

    var folder: TemporaryFolder { nginx.folder }

    var port: UInt16 { nginx.port(.http2) }

    var caFile: String { nginx.certificate }

    func url(_ path: String) -> String { nginx.url(path, .http2) }

    /// The pin of the server's key, as OpenSSL computes it.
    func pin() async throws -> String { try await nginx.pin() }

    func file(_ name: String) -> [UInt8] { readFile(folder.file(name)) ?? [] }
}
