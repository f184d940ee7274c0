import Glibc

/// The machine's nginx on free loopback ports: plain, with TLS and HTTP/2, and with TLS and HTTP/1.1 only.
package final class Nginx: Sendable {
    package static let isAvailable = access("/usr/sbin/nginx", X_OK) == 0 && access("/usr/bin/openssl", X_OK) == 0

    package enum Manner: Int, CaseIterable, Sendable { case plain, http2, secure }

    /// Its folder; `www` in it is served.
    package let folder: TemporaryFolder
    private let ports: [UInt16]
    private let process: ChildProcess

    /// - Parameters:
    ///   - settings: More lines of the `server` block. `FOLDER` is replaced by the folder.
    ///   - protocols: TLS versions in nginx's words.
    ///   - name: The certificate's subject alternative name, `IP:127.0.0.1` or `DNS:…`.
    ///   - validity: The begin and end of its validity, as `YYYYMMDDHHMMSSZ`; `nil` for two days from now.
    package init(
        _ settings: String = "", protocols: String = "TLSv1.2 TLSv1.3", name: String = "IP:127.0.0.1",
        validity: (from: String, until: String)? = nil
    ) async throws {
        folder = TemporaryFolder()
        folder.makeFolder("www")
        try await Self.makeCertificate(in: folder, "server", name)
        if let validity { try await Self.resign(in: folder, name, validity) }
        try await Self.makeCertificate(in: folder, "client", "DNS:client")
        // Users of `auth_basic_user_file`.
        folder.write(Array("u:{PLAIN}p\n".utf8), to: "users")
        let settings = "ssl_protocols \(protocols); \(settings)"
        let folder = folder
        (ports, process) = try await startOnFreePorts(3) { ports in
            folder.write(Array(Self.configuration(folder, ports, settings).utf8), to: "nginx.conf")
            return ["/usr/sbin/nginx", "-p", folder.path, "-c", folder.file("nginx.conf")]
        } isReady: {
            // The file is written when nginx listens.
            access(folder.file("nginx.pid"), F_OK) == 0
        }
    }

    package func port(_ manner: Manner) -> UInt16 { ports[manner.rawValue] }

    package func url(_ path: String, _ manner: Manner = .plain) -> String {
        "\(manner == .plain ? "http" : "https")://127.0.0.1:\(port(manner))\(path)"
    }

    /// The certificate that its clients have to trust, and the pin of its key.
    package var certificate: String { folder.file("server.pem") }

    package func pin() async throws -> String {
        let script =
            "openssl x509 -in \(certificate) -pubkey -noout | openssl pkey -pubin -outform der"
            + " | openssl dgst -sha256 -binary | base64"
        let output = try await ChildProcess.run(["/bin/sh", "-c", script])
        return "sha256/" + String(decoding: output, as: UTF8.self).filter { $0 != "\n" }
    }

    /// The text of a file in the folder.
    package func text(_ name: String) -> String { String(decoding: readFile(folder.file(name)) ?? [], as: UTF8.self) }

    private static func makeCertificate(in folder: TemporaryFolder, _ file: String, _ name: String) async throws {
        try await ChildProcess.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-keyout", folder.file("\(file).key"), "-out", folder.file("\(file).pem"), "-subj", "/CN=\(file)",
            "-addext",
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

    private static func configuration(_ folder: TemporaryFolder, _ ports: [UInt16], _ settings: String) -> String {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(folder.file("temporary-\($0)"));" }.joined(separator: "\n")
        let user = geteuid() == 0 ? "user root;" : ""
        return """
            \(user) daemon off; worker_processes 1; pid \(folder.file("nginx.pid")); error_log \(folder.file("error.log"));
            events { worker_connections 512; }
            http {
                access_log off; default_type application/octet-stream;
                types { text/plain txt; }
                \(temporary)
                server {
                    listen 127.0.0.1:\(ports[0]);
                    listen 127.0.0.1:\(ports[1]) ssl http2;
                    listen 127.0.0.1:\(ports[2]) ssl;
                    ssl_certificate \(folder.file("server.pem")); ssl_certificate_key \(folder.file("server.key"));
                    root \(folder.file("www"));
                    \(settings.replacing("FOLDER", with: folder.path))
                }
            }
            """
    }
}

/// Starts a program that cannot choose its ports itself: on ports that were free just before, and on others if another
/// program was faster.
package func startOnFreePorts(
    _ count: Int, command: ([UInt16]) -> [String], isReady: () -> Bool
) async throws -> ([UInt16], ChildProcess) {
    for _ in 0..<5 {
        let ports = try (0..<count).map { _ in try Socket.listen(port: 0) }.map(\.port)
        let process = try await ChildProcess(command(ports))
        try await eventually("a program listens, or gives up") { isReady() || process.hasEnded }
        if !process.hasEnded { return (ports, process) }
    }
    throw DeadlineExceeded("a program finds free ports")
}
