import Base
import Glibc
import TestSupport

/// A certificate authority.
final class Authority: Sendable {
    /// Files with a certificate and its key.
    struct Identity: Sendable {
        let certificate: String
        let key: String
        /// Their folder.
        fileprivate let folder: TemporaryFolder
    }

    static let isAvailable = access("/usr/bin/openssl", X_OK) == 0

    /// The replacement of `/etc/ssl/certs` for programs that trust it.
    let trust: String
    private let folder = TemporaryFolder()
    private let count = Locked(0)

    init() async throws {
        folder.makeFolder("trust")
        trust = folder.file("trust")
        let settings = """
            [req]
            distinguished_name = name
            x509_extensions = root
            prompt = no
            [name]
            CN = An authority of these tests
            [root]
            basicConstraints = critical, CA:TRUE
            keyUsage = critical, keyCertSign
            """
        let file = folder.write(Array(settings.utf8), to: "root.conf")
        try await ChildProcess.run(
            ["/usr/bin/openssl", "req", "-x509", "-days", "30", "-config", file] + Self.newKey(folder.file("root.key"))
                + ["-out", folder.file("trust/ca-certificates.crt")])
    }

    /// Signs a certificate.
    ///
    /// - Parameters:
    ///   - names: Its subject alternative names.
    ///   - validity: The begin and end, as `YYYYMMDDHHMMSSZ`.
    ///   - ownKey: Whether the certificate is self-signed.
    func identity(
        _ names: String = "IP:127.0.0.1,DNS:localhost",
        validity: (from: String, until: String) = ("20250101000000Z", "20990101000000Z"), ownKey: Bool = false
    ) async throws -> Identity {
        let number = count.withLock { count in
            count += 1
            return count
        }
        let place = folder.makeFolder("\(number)")
        folder.write([], to: "\(number)/index")
        folder.write(Array("0\(number % 10)".utf8), to: "\(number)/serial")
        let settings = """
            [req]
            distinguished_name = name
            prompt = no
            [name]
            CN = An origin of these tests
            [ca]
            default_ca = own
            [own]
            database = \(place)/index
            serial = \(place)/serial
            new_certs_dir = \(place)
            default_md = sha256
            policy = any
            x509_extensions = leaf
            [any]
            commonName = optional
            [leaf]
            subjectAltName = \(names)
            """
        let file = folder.write(Array(settings.utf8), to: "\(number)/conf")
        let identity = Identity(certificate: "\(place)/certificate", key: "\(place)/key", folder: folder)
        let request = "\(place)/request"
        try await ChildProcess.run(
            ["/usr/bin/openssl", "req", "-new", "-config", file, "-out", request] + Self.newKey(identity.key))
        let signer =
            ownKey
            ? ["-selfsign", "-keyfile", identity.key]
            : ["-cert", folder.file("trust/ca-certificates.crt"), "-keyfile", folder.file("root.key")]
        try await ChildProcess.run(
            ["/usr/bin/openssl", "ca", "-batch", "-notext", "-config", file, "-in", request] + signer
                + ["-out", identity.certificate, "-startdate", validity.from, "-enddate", validity.until])
        return identity
    }

    /// The pin of an identity's key, as OpenSSL computes it.
    static func pin(of identity: Identity) async throws -> String {
        let script =
            "openssl pkey -in \(identity.key) -pubout -outform der | openssl dgst -sha256 -binary | base64"
        let output = try await ChildProcess.run(["/bin/sh", "-c", script])
        return "sha256/" + String(decoding: output, as: UTF8.self).filter { $0 != "\n" }
    }

    private static func newKey(_ file: String) -> [String] {
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", file]
    }
}
