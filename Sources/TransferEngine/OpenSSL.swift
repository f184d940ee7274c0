import Base

/// The OpenSSL that libcurl loaded. The signatures are those since 1.1.0, which Debian builds libcurl with.
struct OpenSSL: Sendable {
    typealias Pointer = UnsafeMutableRawPointer
    /// `SSL_get_version` and `SSL_CIPHER_get_name`.
    private typealias Name = @convention(c) (Pointer) -> UnsafePointer<CChar>?
    /// A getter of another object.
    private typealias Part = @convention(c) (Pointer) -> Pointer?
    private typealias Number = @convention(c) (Pointer) -> Int32
    /// Writes an object in DER to `output` and advances the pointer; without `output` it returns only the length.
    private typealias Encode =
        @convention(c) (Pointer, _ output: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    /// Verifies the certificates in an `X509_STORE_CTX`: 1 for success.
    typealias Verify = @convention(c) (_ verification: Pointer?, _ context: Pointer?) -> Int32
    private typealias SetVerify = @convention(c) (_ settings: Pointer, Verify, _ context: Pointer?) -> Void

    private let version: Name
    private let currentCipher: Part
    private let cipherName: Name
    private let peerAuthorities: Part
    private let verifyMode: Number
    private let setVerify: SetVerify
    private let certificate: Part
    private let publicKey: Part
    private let encodeKey: Encode

    /// `nil` if libcurl uses another library.
    static let shared: OpenSSL? = {
        guard let version = symbol("SSL_get_version", Name.self),
            let currentCipher = symbol("SSL_get_current_cipher", Part.self),
            let cipherName = symbol("SSL_CIPHER_get_name", Name.self),
            let peerAuthorities = symbol("SSL_get0_peer_CA_list", Part.self),
            let verifyMode = symbol("SSL_CTX_get_verify_mode", Number.self),
            let setVerify = symbol("SSL_CTX_set_cert_verify_callback", SetVerify.self),
            let certificate = symbol("X509_STORE_CTX_get0_cert", Part.self),
            let publicKey = symbol("X509_get_X509_PUBKEY", Part.self),
            let encodeKey = symbol("i2d_X509_PUBKEY", Encode.self)
        else { return nil }
        return OpenSSL(
            version: version, currentCipher: currentCipher, cipherName: cipherName, peerAuthorities: peerAuthorities,
            verifyMode: verifyMode, setVerify: setVerify, certificate: certificate, publicKey: publicKey,
            encodeKey: encodeKey)
    }()

    /// The version and cipher of a live connection, and whether the server requested a certificate in its handshake.
    func facts(of session: Pointer) -> (version: String, cipher: String, asksForCertificate: Bool)? {
        guard let version = version(session), let cipher = currentCipher(session), let name = cipherName(cipher) else {
            return nil
        }
        return (String(cString: version), String(cString: name), peerAuthorities(session) != nil)
    }

    /// Makes `verify` the judge of certificates in handshakes, unless invalid certificates already end them.
    ///
    /// - Parameter settings: An `SSL_CTX *`.
    func judgeCertificates(of settings: Pointer, by verify: Verify, _ context: Pointer) {
        guard verifyMode(settings) == 0 /* SSL_VERIFY_NONE */ else { return }
        setVerify(settings, verify, context)
    }

    /// The pin of the verified certificate's key: `sha256/BASE64` of its SubjectPublicKeyInfo (RFC 7469 section 2.4).
    func pin(in verification: Pointer) -> String? {
        guard let certificate = certificate(verification), let key = publicKey(certificate) else { return nil }
        let length = encodeKey(key, nil)
        guard length > 0 else { return nil }
        let bytes = [UInt8](unsafeUninitializedCapacity: Int(length)) { buffer, count in
            var end = buffer.baseAddress
            count = Int(max(0, encodeKey(key, &end)))
        }
        return "sha256/" + Digest.of(bytes).base64
    }
}
