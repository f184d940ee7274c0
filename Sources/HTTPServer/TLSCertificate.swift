import CCrypto

/// A certificate chain with its key, as TLS sessions present it. The GnuTLS object is freed with its last session.
///
/// Unchecked: it never changes after its creation, and GnuTLS lets sessions on any thread share immutable credentials.
package final class TLSCertificate: @unchecked Sendable {
    package struct Unusable: Error, CustomStringConvertible {
        package let description: String
    }

    private let credentials: gnutls_certificate_credentials_t

    /// - Parameters:
    ///   - certificate: The chain in PEM, the server's own certificate first.
    ///   - key: Its key in PEM.
    /// - Throws: ``Unusable`` if one of them cannot be read, or the key belongs to another certificate.
    package init(certificate: [UInt8], key: [UInt8]) throws(Unusable) {
        var made: gnutls_certificate_credentials_t?
        let allocation = gnutls_certificate_allocate_credentials(&made)
        guard let made else { throw Unusable(code: allocation) }
        credentials = made
        var (certificate, key) = (certificate, key)
        let code = certificate.withUnsafeMutableBufferPointer { certificate in
            key.withUnsafeMutableBufferPointer { key in
                var chain = gnutls_datum_t(data: certificate.baseAddress, size: UInt32(certificate.count))
                var secret = gnutls_datum_t(data: key.baseAddress, size: UInt32(key.count))
                return gnutls_certificate_set_x509_key_mem(made, &chain, &secret, GNUTLS_X509_FMT_PEM)
            }
        }
        guard code >= 0 else { throw Unusable(code: code) }
    }

    deinit { gnutls_certificate_free_credentials(credentials) }

    /// Sets the certificate for the session's handshake. It must outlive the session.
    ///
    /// - Parameter session: A `gnutls_session_t`.
    package func present(in session: OpaquePointer) {
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials))
    }
}

extension TLSCertificate.Unusable {
    fileprivate init(code: CInt) {
        self.init(description: gnutls_strerror(code).map { String(cString: $0) } ?? "GnuTLS \(code)")
    }
}
