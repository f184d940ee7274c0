import Base
import CCrypto
import Glibc

@testable import TestSupport

/// TLS with GnuTLS before a plaintext server of 127.0.0.1, byte for byte: the peer gets that server's faults.
final class SecureFront: Sendable {
    /// The handshake and the end of a connection.
    struct Manner: Sendable {
        enum Handshake: Sendable { case shakes, stalls, resets }

        let identity: Authority.Identity
        var handshake = Handshake.shakes
        /// ALPN.
        var applicationProtocols = ["http/1.1"]
        /// The port of HTTP/2, if another one.
        var http2Port: UInt16?
        /// GnuTLS' priority string.
        var priority = "NORMAL"
        /// Whether the peer must have a certificate.
        var demandsCertificate = false
        /// Whether the connection ends with close_notify.
        var saysGoodbye = true

        init(as identity: Authority.Identity, _ change: (inout Manner) -> Void = { _ in }) {
            self.identity = identity
            change(&self)
        }
    }

    let port: UInt16
    private let server: SocketServer
    private let turn: Locked<Int>

    /// The number of accepted connections.
    var connections: Int { turn.withLock { $0 } }

    /// - Parameter manners: One for each connection in turn, the last for all further ones.
    init(before port: UInt16, _ manners: [Manner]) throws {
        let turn = Locked(0)
        self.turn = turn
        server = try SocketServer(port: 0) { socket in
            let index = turn.withLock { turn in
                turn += 1
                return turn - 1
            }
            let manner = manners[min(index, manners.count - 1)]
            switch manner.handshake {
            case .shakes: SecureSession(socket, manner)?.serve(port)
            case .stalls: while !socket.waitForHangUp(atMost: .seconds(1)) {}
            case .resets:
                // After the peer's first bytes.
                guard (try? socket.receive()) != nil else { return }
                return socket.resetAtClose()
            }
            socket.shutdown()
        }
        self.port = server.port
    }

    deinit { server.stop() }

    func url(_ path: String, host: String = "127.0.0.1") -> String { "https://\(host):\(port)\(path)" }
}

/// One connection, on the thread that owns it. Corresponds to `gnutls_session_t`.
private final class SecureSession {
    private let socket: Socket
    private let manner: SecureFront.Manner
    private var session: gnutls_session_t?
    private var credentials: gnutls_certificate_credentials_t?

    init?(_ socket: Socket, _ manner: SecureFront.Manner) {
        self.socket = socket
        self.manner = manner
        guard gnutls_certificate_allocate_credentials(&credentials) == 0,
            gnutls_certificate_set_x509_key_file(
                credentials, manner.identity.certificate, manner.identity.key, GNUTLS_X509_FMT_PEM) == 0,
            gnutls_init(&session, UInt32(GNUTLS_SERVER) | UInt32(GNUTLS_NO_SIGNAL)) == 0,
            gnutls_priority_set_direct(session, manner.priority, nil) == 0,
            gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, UnsafeMutableRawPointer(credentials)) == 0
        else { return nil }
        if manner.demandsCertificate { gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE) }
        let code = Self.offer(manner.applicationProtocols.map { Array($0.utf8) }, session)
        guard code == 0 else { return nil }
        gnutls_transport_set_int2(session, socket.descriptor, socket.descriptor)
    }

    private static func offer(_ names: [[UInt8]], _ session: gnutls_session_t?) -> Int32 {
        let bytes = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 64)
        defer { bytes.deallocate() }
        var offers: [gnutls_datum_t] = []
        var used = 0
        for name in names {
            for (place, byte) in name.enumerated() { bytes[used + place] = byte }
            offers.append(gnutls_datum_t(data: bytes.baseAddress?.advanced(by: used), size: UInt32(name.count)))
            used += name.count
        }
        // GnuTLS keeps copies.
        return gnutls_alpn_set_protocols(session, offers, UInt32(offers.count), 0)
    }

    /// Whether HTTP/2 was negotiated.
    private var speaksHTTP2: Bool {
        var chosen = gnutls_datum_t()
        return gnutls_alpn_get_selected_protocol(session, &chosen) == 0 && chosen.size == 2
    }

    deinit {
        if let session { gnutls_deinit(session) }
        if let credentials { gnutls_certificate_free_credentials(credentials) }
    }

    /// Performs the handshake, then forwards bytes in both directions until one side ends.
    func serve(_ port: UInt16) {
        var code: Int32 = 0
        repeat { code = gnutls_handshake(session) } while code < 0 && gnutls_error_is_fatal(code) == 0
        guard code == 0 else {
            gnutls_alert_send_appropriate(session, code)
            // Closing with unread bytes would send a reset, and hide the alert.
            socket.finishSending()
            socket.setTimeout(.seconds(5))
            while (try? socket.receive())?.isEmpty == false {}
            return
        }
        let target = speaksHTTP2 ? manner.http2Port ?? port : port
        guard let inner = try? Socket.connect(port: target) else { return }
        try? carry(inner)
        inner.shutdown()
        if manner.saysGoodbye { gnutls_bye(session, GNUTLS_SHUT_WR) }
    }

    private func carry(_ inner: Socket) throws {
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var waits = [
                pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: inner.descriptor, events: Int16(POLLIN), revents: 0),
            ]
            let isPending = gnutls_record_check_pending(session) > 0
            guard poll(&waits, 2, isPending ? 0 : -1) >= 0 || errno == EINTR else { return }
            if isPending || waits[0].revents != 0 {
                let count = gnutls_record_recv(session, &buffer, buffer.count)
                if count > 0 {
                    try inner.send(Array(buffer[..<count]))
                } else if count == 0 || gnutls_error_is_fatal(Int32(count)) != 0 {
                    return
                }
            }
            if waits[1].revents != 0 {
                let bytes = try inner.receive()
                guard !bytes.isEmpty else { return }
                var sent = 0
                while sent < bytes.count {
                    let count = bytes[sent...].withUnsafeBytes {
                        gnutls_record_send(session, $0.baseAddress, $0.count)
                    }
                    if count < 0, gnutls_error_is_fatal(Int32(count)) != 0 { return }
                    sent += max(0, count)
                }
            }
        }
    }
}
