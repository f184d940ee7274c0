import Base
import Core
import Glibc
import TestSupport

/// nginx with TLS and HTTP/2 on a loopback port, with certificates made for the test.
final class TLSOrigin: Sendable {
    static let isAvailable = access("/usr/sbin/nginx", X_OK) == 0 && access("/usr/bin/openssl", X_OK) == 0

    let folder: TemporaryFolder
    let port: UInt16
    private let nginx: ChildProcess

    /// - Parameters:
    ///   - name: The certificate's subject alternative name, `IP:127.0.0.1` or `DNS:…`.
    ///   - validity: From and until when, as `YYYYMMDDHHMMSSZ`; nil for now and two days.
    ///   - protocols: TLS versions as nginx names them.
    ///   - settings: More lines for nginx's `server` block.
    init(
        name: String = "IP:127.0.0.1", validity: (from: String, until: String)? = nil,
        protocols: String = "TLSv1.2 TLSv1.3", settings: String = ""
    ) async throws {
        folder = TemporaryFolder()
        folder.makeFolder("www")
        try await Self.makeCertificate(in: folder, "server", name)
        if let validity { try await Self.resign(in: folder, name, validity) }
        try await Self.makeCertificate(in: folder, "client", "DNS:client")
        // A free port, given back for nginx to take.
        port = try OriginServer().port
        let settings = "ssl_protocols \(protocols); \(settings)"
        folder.write(Array(Self.configuration(folder, port, settings).utf8), to: "nginx.conf")
        nginx = try await ChildProcess(["/usr/sbin/nginx", "-p", folder.path, "-c", folder.file("nginx.conf")])
        let port = port
        try await eventually("nginx listens") { (try? Socket.connect(port: port)) != nil }
    }

    var caFile: String { folder.file("server.pem") }

    func url(_ path: String) -> String { "https://127.0.0.1:\(port)\(path)" }

    /// The pin of the server's key, as OpenSSL computes it.
    func pin() async throws -> String {
        let script =
            "openssl x509 -in \(caFile) -pubkey -noout | openssl pkey -pubin -outform der"
            + " | openssl dgst -sha256 -binary | base64"
        let output = try await ChildProcess.run(["/bin/sh", "-c", script])
        return "sha256/" + String(decoding: output, as: UTF8.self).filter { $0 != "\n" }
    }

    func file(_ name: String) -> [UInt8] { readFile(folder.file(name)) ?? [] }

    private static func makeCertificate(in folder: TemporaryFolder, _ file: String, _ name: String) async throws {
        try await ChildProcess.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", folder.file("\(file).key"), "-out", folder.file("\(file).pem"), "-subj", "/CN=test", "-addext",
            "subjectAltName=\(name)", "-days", "2",
        ])
    }

    /// Signs the server's certificate again: only `openssl ca` takes both dates.
    private static func resign(
        in folder: TemporaryFolder, _ name: String, _ validity: (from: String, until: String)
    ) async throws {
        let settings = """
            [ca]
            default_ca = own
            [own]
            database = \(folder.file("index"))
            serial = \(folder.file("serial"))
            new_certs_dir = \(folder.path)
            default_md = sha256
            policy = any
            x509_extensions = names
            [any]
            commonName = optional
            [names]
            subjectAltName = \(name)
            """
        folder.write(Array(settings.utf8), to: "ca.conf")
        folder.write([], to: "index")
        folder.write(Array("01".utf8), to: "serial")
        let (key, request) = (folder.file("server.key"), folder.file("request"))
        try await ChildProcess.run([
            "/usr/bin/openssl", "req", "-new", "-key", key, "-out", request, "-subj", "/CN=test",
        ])
        try await ChildProcess.run([
            "/usr/bin/openssl", "ca", "-batch", "-selfsign", "-notext", "-config", folder.file("ca.conf"), "-keyfile",
            key, "-in", request, "-out", folder.file("server.pem"), "-startdate", validity.from, "-enddate",
            validity.until,
        ])
    }

    private static func configuration(_ folder: TemporaryFolder, _ port: UInt16, _ settings: String) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder.file("temporary-\($0)"));" }.joined(separator: "\n")
        let user = geteuid() == 0 ? "user root;" : ""
        return """
            \(user) daemon off; worker_processes 1; pid \(folder.file("nginx.pid")); error_log \(folder.file("error.log"));
            events { worker_connections 512; }
            http {
                access_log off;
                \(temporary)
                server {
                    listen 127.0.0.1:\(port) ssl http2;
                    ssl_certificate \(folder.file("server.pem")); ssl_certificate_key \(folder.file("server.key"));
                    ssl_client_certificate \(folder.file("client.pem")); ssl_verify_client optional;
                    root \(folder.file("www"));
                    location = /client { return 200 "$ssl_client_verify"; }
                    \(settings)
                }
            }
            """
    }
}
