import Base
import CLinux
import CMicroHTTPD
import Glibc

/// One client's connection, from libmicrohttpd's "started" to its "closed".
///
/// The library owns the descriptor. Between the two events it may be shut down, written to and duplicated under the
/// lock that "closed" takes too, so that its number never refers to another connection.
final class ClientConnection: Sendable {
    /// Whether the client reads bytes as they are written to the descriptor: no TLS.
    let isPlain: Bool
    private let descriptor: Int32
    /// The certificate that the connection presents, kept for as long as its TLS session may use it.
    private let certificate: TLSCertificate?
    private let state: Locked<State>

    private struct State: Sendable {
        /// The deadline of the current head or body, in milliseconds of the monotonic clock.
        var deadline: Int64?
        var request: ServedRequest?
        var isClosed = false
    }

    init(_ handle: ConnectionHandle, presenting certificate: TLSCertificate?, deadline: Int64) {
        isPlain = certificate == nil
        self.certificate = certificate
        if let certificate, let session = mhd_connection_tls(handle.pointer) {
            certificate.present(in: OpaquePointer(session))
        }
        descriptor = mhd_connection_descriptor(handle.pointer)
        state = Locked(State(deadline: deadline))
    }

    var request: ServedRequest? { state.withLock { $0.request } }

    func setDeadline(_ deadline: Int64?) { state.withLock { $0.deadline = deadline } }

    /// - Parameter headDeadline: The deadline of the request's head, unless an earlier one applies.
    func requestBegan(_ request: ServedRequest, headDeadline: Int64) {
        state.withLock { state in
            state.request = request
            state.deadline = state.deadline.map { min($0, headDeadline) }
        }
    }

    func requestEnded(nextDeadline: Int64) {
        let ended = state.withLock { state in
            state.deadline = nextDeadline
            return state.request.take()
        }
        _ = ended  // Freed outside the lock.
    }

    func closed() { state.withLock { $0.isClosed = true } }

    /// Closes the connection if its deadline has passed, otherwise checks its request.
    func look(at now: Int64, _ server: HTTPServer) {
        let (request, isLate) = state.withLock { state -> (ServedRequest?, Bool) in
            guard let deadline = state.deadline, now >= deadline else { return (state.request, false) }
            state.deadline = nil
            return (state.request, true)
        }
        switch (request, isLate) {
        case (let request?, true): request.expire()
        case (let request?, false): request.look(at: now)
        case (nil, true):
            let id = randomRequestID()
            let response = server.refusal(.requestTimeout, "", id)
            if let bytes = RawAnswer.bytes(response, requestID: id, isHead: false) { write(bytes) }
            shut()
        case (nil, false): break
        }
    }

    /// Writes to the socket directly, as much as it accepts at once. Only valid while the library writes nothing.
    func write(_ bytes: [UInt8]) {
        state.withLock { state in
            guard isPlain, !state.isClosed else { return }
            _ = bytes.withUnsafeBytes {
                send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT | MSG_NOSIGNAL))
            }
        }
    }

    /// Shuts both directions down; libmicrohttpd notices and closes.
    func shut() {
        state.withLock { if !$0.isClosed { _ = shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    /// Whether the socket has bytes that libmicrohttpd has not read.
    var hasUnread: Bool {
        state.withLock { state in
            var count: Int32 = 0
            return !state.isClosed && clinux_unread_bytes(descriptor, &count) == 0 && count > 0
        }
    }

    /// The kernel's send buffer for a stream whose client does not read, in bytes; the default would be megabytes. The
    /// kernel doubles the number for its own needs (socket(7), `SO_SNDBUF`).
    private static let streamBuffer: Int32 = 32 * 1024

    /// Limits the kernel's send buffer for the client.
    func limitSendBuffer() { set(SOL_SOCKET, SO_SNDBUF, Self.streamBuffer) }

    /// Limits the time for which sent bytes may stay unacknowledged (`TCP_USER_TIMEOUT`, tcp(7)). The kernel sends no
    /// keep-alive probe meanwhile, and would by default send the bytes again for a quarter of an hour.
    func limitSilence(_ limit: Duration) {
        set(Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, Int32(clamping: limit.milliseconds))
    }

    private func set(_ level: Int32, _ option: Int32, _ value: Int32) {
        state.withLock { if !$0.isClosed { SocketAddress.setOption(descriptor, level, option, value) } }
    }

    /// Another descriptor of the same socket, which the caller closes; `nil` if there is none.
    func duplicate() -> Int32? {
        state.withLock { state in
            guard !state.isClosed else { return nil }
            let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
            return copy >= 0 ? copy : nil
        }
    }
}
