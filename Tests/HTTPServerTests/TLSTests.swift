import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct TLSTests {
    /// Valid until 2126 for `localhost`. Its key is public below, so it is no secret.
    private let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmzCCAUGgAwIBAgIUFAcv/5LOWtGydiJwREgRoxY9VTIwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA5NTU0N1oYDzIxMjYxMDI4
        MDk1NTQ3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQQ1nxOKTYo2BK520rBoFjmgnsHE8HBqhCfHa8Oqmho9AFi2YpxkcgU
        GGv/S/8dYHRqQAQkEX7D2nUKlrv1dUWvo28wbTAdBgNVHQ4EFgQUIMyLvnyphOpy
        Ok3GJ9iuPQutTW8wHwYDVR0jBBgwFoAUIMyLvnyphOpyOk3GJ9iuPQutTW8wDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDSAAwRQIhAOMvwYtMsCxTBBCGstc6ID/61UK5cd6/JU1Bk0Shvg5IAiBg
        tadwrcwimk5MJDphDvpBnOrjvh2e3M6pAT+vAVAiig==
        -----END CERTIFICATE-----

        """
    private let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgrJWQed4Swlut5ewj
        xy5BXDFybwQJDv0xtsBw0R3gMnWhRANCAAQQ1nxOKTYo2BK520rBoFjmgnsHE8HB
        qhCfHa8Oqmho9AFi2YpxkcgUGGv/S/8dYHRqQAQkEX7D2nUKlrv1dUWv
        -----END PRIVATE KEY-----

        """

    /// OpenSSL's first message for `localhost`.
    private let clientHello = """
        1603010200010001fc030370c53185f4b0156ac1bac336016a26e1b7ce714baa9d1d0cab75bc7b014c835b2028e471eafa74
        9b89619c26b70f6350462413069273af78df6179eba499e9f0e30024130213031301c02cc030c02bc02fcca9cca8c024c028
        c023c027009f009e006b006700ff0100018f0000000e000c0000096c6f63616c686f7374000b000403000102000a00160014
        001d0017001e0019001801000101010201030104002300000016000000170000000d002a0028040305030603080708080809
        080a080b080408050806040105010601030303010302040205020602002b00050403040303002d0002010100330026002400
        1d0020a2dbba23a51f528eef9bef226fe8212f62eeae92a176e5a8413a838952a50357001500e40000000000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
        0000000000000000000000000000000000
        """

    private func pair() throws -> TLSCertificate {
        try TLSCertificate(certificate: Array(certificate.utf8), key: Array(key.utf8))
    }

    /// The output of openssl's client for inputs a second apart.
    private func client(_ port: UInt16, _ options: String, _ inputs: String...) async throws -> String {
        let input = inputs.map { "printf '\($0)'; sleep 1" }.joined(separator: "; ")
        let output = try await ChildProcess.run([
            "/bin/sh", "-c",
            "{ \(input.isEmpty ? "true" : input); } | timeout 20 openssl s_client -connect 127.0.0.1:\(port) \(options) 2>&1; true",
        ])
        return String(decoding: output, as: UTF8.self)
    }

    @Test func `An invalid certificate and a key of another one are refused with the reason`() async throws {
        let other = try await ChildProcess.run([
            "/usr/bin/openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
        ])
        let (certificate, key) = (Array(certificate.utf8), Array(key.utf8))
        for (certificate, key) in [(certificate, other), (key, key), (certificate, certificate), ([], [])] {
            let refused = #expect(throws: TLSCertificate.Unusable.self) {
                try TLSCertificate(certificate: certificate, key: key)
            }
            #expect(refused?.description.isEmpty == false)
        }
    }

    @Test func `Only authenticated encryption is accepted, and renegotiation is refused`() async throws {
        let server = try HTTPServer.start(
            on: Listener(address: "127.0.0.1", port: 0), certificate: try pair(),
            router: Router([Route("GET", "/x") { _ in text("x") }]),
            refusal: plainRefusal, log: .none)
        // The client stays connected until the server closes.
        let request = "GET /x HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n"
        for cipher in ["ECDHE-ECDSA-AES128-SHA256", "ECDHE-ECDSA-AES256-SHA", "ECDHE-ECDSA-AES128-CCM8"] {
            let refused = try await client(server.port, "-tls1_2 -cipher \(cipher):@SECLEVEL=0")
            #expect(refused.contains("Cipher is (NONE)"), "\(refused)")
        }
        for version in ["-tls1", "-tls1_1"] {
            let refused = try await client(server.port, "\(version) -cipher ALL:@SECLEVEL=0")
            #expect(refused.contains("Cipher is (NONE)"), "\(refused)")
        }
        for options in ["-tls1_2 -quiet -cipher ECDHE-ECDSA-AES256-GCM-SHA384", "-tls1_3 -quiet"] {
            let accepted = try await client(server.port, options, request)
            #expect(accepted.contains("HTTP/1.1 200"), "\(accepted)")
        }
        // The line "R" makes s_client request another handshake.
        let renegotiated = try await client(server.port, "-tls1_2", "R\\n", request)
        #expect(renegotiated.contains("RENEGOTIATING") && !renegotiated.contains("HTTP/1.1 200"), "\(renegotiated)")
        await server.stop(within: .seconds(5))
    }

    @Test func `A TLS server answers a TLS client and sends nothing to a plaintext one`() async throws {
        let server = try HTTPServer.start(
            on: Listener(address: "127.0.0.1", port: 0), certificate: try pair(),
            router: Router([Route("GET", "/x") { _ in text("x") }]),
            refusal: plainRefusal, log: .none)
        let digits = Array(clientHello.utf8.filter { $0 != 0x0A })
        let hello = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0..<($0 + 2)], as: UTF8.self), radix: 16)
        }
        try await onThread {
            let client = try RawClient(server.port)
            try client.send(hello)
            let record = try client.take(6)
            #expect(record[0] == 22)  // Handshake (RFC 8446, section 5.1),
            #expect(record[5] == 2)  // ServerHello.
            let plain = try RawClient(server.port)
            try plain.request("GET", "/x")
            #expect(throws: (any Error).self) { try plain.answer() }
        }
        await server.stop(within: .seconds(5))
    }
}
