import Base
import CCurl
import CLinux
import Files

/// The sockets of all pools of a loop, and the pool of each.
final class SocketWatch {
    let epoll: Epoll
    private var owners: [Int32: ConnectionPool] = [:]

    init(_ epoll: Epoll) { self.epoll = epoll }

    func owner(of socket: Int32) -> ConnectionPool? { owners[socket] }

    fileprivate func update(_ socket: Int32, _ what: Int32, for pool: ConnectionPool) {
        switch what {
        case CURL_POLL_IN: watch(socket, .read, pool)
        case CURL_POLL_OUT: watch(socket, .write, pool)
        case CURL_POLL_INOUT: watch(socket, [.read, .write], pool)
        case CURL_POLL_REMOVE:
            owners[socket] = nil
            epoll.forget(socket)
        default: break
        }
    }

    private func watch(_ socket: Int32, _ interest: Epoll.Interest, _ pool: ConnectionPool) {
        owners[socket] = pool
        epoll.watch(socket, interest)
    }

    fileprivate func forget(_ pool: ConnectionPool) {
        for (socket, owner) in owners where owner === pool {
            owners[socket] = nil
            epoll.forget(socket)
        }
    }
}

@available(*, unavailable)
extension SocketWatch: Sendable {}

/// The connections of one pool on one loop. Corresponds to `CURLM *`.
///
/// One multi handle per pool: libcurl shares connections, TLS sessions and resolved names within a multi handle, and
/// nothing between two.
final class ConnectionPool {
    private let raw: UnsafeMutableRawPointer
    private let watch: SocketWatch
    private let state: LoopState
    private var isClosed = false
    /// The number of exchanges in the pool.
    private(set) var active = 0
    /// When the last exchange was removed (monotonic ms).
    private(set) var idleSince: Int64
    /// Servers (`host:port`) that requested a certificate in a handshake of this pool.
    var certificateAskers: Set<String> = []
    /// When libcurl wants its next timeout call (monotonic ms).
    private(set) var alarm: Int64?

    init(_ watch: SocketWatch, _ state: LoopState) {
        guard let raw = curl_multi_init() else { preconditionFailure("curl_multi_init") }
        self.raw = raw
        self.watch = watch
        self.state = state
        idleSince = state.now
        let context = Unmanaged.passUnretained(self).toOpaque()
        check(ccurl_multi_set_pointer(raw, CURLMOPT_SOCKETDATA, context))
        check(ccurl_multi_set_socket_function(raw, socketChanged))
        check(ccurl_multi_set_pointer(raw, CURLMOPT_TIMERDATA, context))
        check(ccurl_multi_set_timer_function(raw, timerChanged))
        check(ccurl_multi_set_long(raw, CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)))
        check(ccurl_multi_set_long(raw, CURLMOPT_MAXCONNECTS, 256))
        check(ccurl_multi_set_long(raw, CURLMOPT_MAX_TOTAL_CONNECTIONS, 0))
        check(ccurl_multi_set_long(raw, CURLMOPT_MAX_HOST_CONNECTIONS, 0))
        check(ccurl_multi_set_long(raw, CURLMOPT_MAX_CONCURRENT_STREAMS, 100))
    }

    deinit { precondition(isClosed, "a pool is closed before it goes") }

    /// Closes all connections. The pool must have no exchanges.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        check(ccurl_multi_set_socket_function(raw, nil))
        check(ccurl_multi_set_timer_function(raw, nil))
        watch.forget(self)
        curl_multi_cleanup(raw)
    }

    func add(_ easy: Easy) {
        check(curl_multi_add_handle(raw, easy.raw))
        active += 1
    }

    func remove(_ easy: Easy) {
        check(curl_multi_remove_handle(raw, easy.raw))
        active -= 1
        if active == 0 { idleSince = state.now }
    }

    /// Passes a ready socket to libcurl.
    func act(on socket: Int32, _ ready: Epoll.Interest) {
        var what: Int32 = 0
        if ready.contains(.read) { what |= CURL_CSELECT_IN }
        if ready.contains(.write) { what |= CURL_CSELECT_OUT }
        if !ready.isDisjoint(with: .failed) { what |= CURL_CSELECT_ERR }
        var running: Int32 = 0
        check(curl_multi_socket_action(raw, socket, what, &running))
    }

    /// Calls libcurl if its timeout is due.
    func actOnAlarm() {
        guard let due = alarm, due <= state.now else { return }
        alarm = nil
        // libcurl does not report that it needs no next timeout after it was called for the last one.
        state.alarmsChanged = true
        var running: Int32 = 0
        check(curl_multi_socket_action(raw, -1 /* CURL_SOCKET_TIMEOUT */, 0, &running))
    }

    /// The next exchange that libcurl has finished.
    func nextFinished() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var left: Int32 = 0
        while let message = curl_multi_info_read(raw, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = ccurl_message_easy(message) else { continue }
            return (easy, ccurl_message_result(message))
        }
        return nil
    }

    fileprivate func socket(_ socket: Int32, became what: Int32) { watch.update(socket, what, for: self) }

    fileprivate func setAlarm(_ milliseconds: Int) {
        alarm = milliseconds < 0 ? nil : state.now + Int64(milliseconds)
        state.alarmsChanged = true
    }

    private func check(_ code: CURLMcode) {
        precondition(code == CURLM_OK, "libcurl multi: \(String(cString: curl_multi_strerror(code)))")
    }
}

@available(*, unavailable)
extension ConnectionPool: Sendable {}

/// State shared by a loop and libcurl's callbacks.
final class LoopState {
    /// Monotonic milliseconds, read from the clock a few times per turn.
    var now: Int64 = 0
    /// Whether the timeout of a pool has changed.
    var alarmsChanged = false
    /// Exchanges with work from callbacks that cannot be done inside a callback.
    var needingAttention: [Exchange] = []
    /// Exchanges that wait for a buffer, by app.
    var awaitingBuffer = OwnerTurns<Exchange>()
}

@available(*, unavailable)
extension LoopState: Sendable {}

private func socketChanged(
    _ easy: UnsafeMutableRawPointer?, _ socket: curl_socket_t, _ what: Int32, _ context: UnsafeMutableRawPointer?,
    _ socketContext: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context else { return 0 }
    Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue().socket(socket, became: what)
    if what == CURL_POLL_REMOVE, let easy { Exchange.of(easy)?.socketIsGone() }
    return 0
}

private func timerChanged(
    _ multi: UnsafeMutableRawPointer?, _ milliseconds: Int, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    guard let context else { return 0 }
    Unmanaged<ConnectionPool>.fromOpaque(context).takeUnretainedValue().setAlarm(milliseconds)
    return 0
}
