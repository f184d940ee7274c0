package import Base
import CMicroHTTPD
import Glibc

/// An HTTP/1.1 server over libmicrohttpd: epoll, a few threads, no thread for a waiting request.
///
/// A handler runs on libmicrohttpd's thread until it first suspends. Then the connection is suspended, the handler
/// continues in Swift's pool, and its response is queued on the library's thread again.
package final class HTTPServer: Sendable {
    /// Creates the body of the server's own responses; the second argument is the request's identifier.
    package typealias Refusal = @Sendable (RefusalReason, _ target: String, _ requestID: String) -> HTTPResponse
    /// Modifies every response before it is sent, for common header fields.
    package typealias Adornment = @Sendable (HTTPRequest, inout HTTPResponse) -> Void

    let limits: ServerLimits
    let router: Router
    let refusal: Refusal
    let adorn: Adornment?
    let log: Log
    let observe: @Sendable (Observation) -> Void
    let clock = Clock.system
    let watch: Watch
    /// The port of the listening socket.
    package let port: UInt16
    private let state = Locked(State())
    /// Rung while the server stops, when a handler or connection that it may wait for has ended.
    private let ending = Doorbell()

    private struct State: Sendable {
        var daemon: Daemon?
        /// The certificate for new connections; `nil` without TLS.
        var certificate: TLSCertificate?
        var clients: [ObjectIdentifier: ClientConnection] = [:]
        var handlers = 0
        var isStopping = false
        var lastSweep: Int64 = 0
    }

    /// Unchecked: started once, stopped once, given connections by one thread in between, as the library allows.
    private struct Daemon: @unchecked Sendable {
        let pointer: OpaquePointer
    }

    /// Serves on a listening socket until ``stop(within:)``.
    ///
    /// - Parameter certificate: The server's certificate; `nil` for plain HTTP.
    /// - Throws: ``ServerStartError`` if the listener was used before.
    package static func start(
        on listener: Listener, limits: ServerLimits = ServerLimits(), certificate: TLSCertificate? = nil,
        router: Router, refusal: @escaping Refusal, adorn: Adornment? = nil, log: Log,
        observe: @escaping @Sendable (Observation) -> Void = { _ in }
    ) throws(ServerStartError) -> HTTPServer {
        signal(SIGPIPE, SIG_IGN)
        guard let descriptor = listener.take() else { throw ServerStartError(message: "the listener serves already") }
        let watch: Watch
        do { watch = try Watch(listener: descriptor, limits: limits) } catch {
            close(descriptor)
            throw error
        }
        let server = HTTPServer(
            limits: limits, router: router, refusal: refusal, adorn: adorn, log: log, observe: observe, watch: watch,
            certificate: certificate, port: listener.port)
        guard let daemon = server.startDaemon(speaksTLS: certificate != nil) else {
            watch.stopAccepting()
            throw ServerStartError(message: "libmicrohttpd could not start")
        }
        server.state.withLock { $0.daemon = Daemon(pointer: daemon) }
        watch.run(server)
        return server
    }

    private init(
        limits: ServerLimits, router: Router, refusal: @escaping Refusal, adorn: Adornment?, log: Log,
        observe: @escaping @Sendable (Observation) -> Void, watch: Watch, certificate: TLSCertificate?, port: UInt16
    ) {
        self.limits = limits
        self.router = router
        self.refusal = refusal
        self.adorn = adorn
        self.log = log
        self.observe = observe
        self.watch = watch
        self.port = port
        state.withLock { $0.certificate = certificate }
    }

    /// Replaces the certificate for new connections; open connections are unaffected. No effect without TLS.
    package func present(_ certificate: TLSCertificate) {
        state.withLock { if $0.certificate != nil { $0.certificate = certificate } }
    }

    /// GnuTLS priorities for TLS 1.3 and 1.2 with authenticated encryption and forward secrecy. libmicrohttpd
    /// disconnects a client that requests a renegotiation.
    private static let tlsPriorities = """
        NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-CIPHER-ALL:+AES-256-GCM:+CHACHA20-POLY1305:+AES-128-GCM:\
        -MAC-ALL:+AEAD:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA
        """

    private func startDaemon(speaksTLS: Bool) -> OpaquePointer? {
        var flags = MHD_USE_EPOLL_INTERNAL_THREAD.rawValue | MHD_ALLOW_SUSPEND_RESUME.rawValue
        flags |= MHD_USE_NO_LISTEN_SOCKET.rawValue | MHD_USE_ERROR_LOG.rawValue
        // Released after the daemon has stopped: its callbacks need the server until then.
        let context = Unmanaged.passRetained(self).toOpaque()
        var options =
            Callbacks.options(context) + [
                option(.THREAD_POOL_SIZE, max(2, limits.threads)),
                option(.CONNECTION_LIMIT, limits.connections + 64),
                option(.CONNECTION_TIMEOUT, max(1, Int(limits.inactivity.milliseconds + 999) / 1000)),
                option(.CONNECTION_MEMORY_LIMIT, limits.connectionMemory),
                option(.STRICT_FOR_CLIENT, 1),
            ]
        let daemon: OpaquePointer?
        if speaksTLS {
            flags |= MHD_USE_TLS.rawValue
            options.append(mhd_sessions_bring_certificates())
            daemon = withText(Self.tlsPriorities) {
                options.append(MHD_OptionItem(option: .HTTPS_PRIORITIES, value: 0, ptr_value: $0))
                return Callbacks.start(flags, context, options)
            }
        } else {
            daemon = Callbacks.start(flags, context, options)
        }
        if daemon == nil { Unmanaged<HTTPServer>.fromOpaque(context).release() }
        return daemon
    }

    // MARK: Connections

    var isStopping: Bool { state.withLock { $0.isStopping } }
    var hasNoClients: Bool { state.withLock { $0.clients.isEmpty } }
    var allClients: [ClientConnection] { state.withLock { Array($0.clients.values) } }

    /// Whether a sweep over all connections is due. Marks the sweep as done.
    func isSweepDue(at now: Int64, tick: Int64) -> Bool {
        state.withLock { state in
            guard now - state.lastSweep >= tick else { return false }
            state.lastSweep = now
            return true
        }
    }

    /// Passes a new connection to libmicrohttpd, which then owns the descriptor. Closes it if there are too many.
    func admit(_ descriptor: Int32, _ address: UnsafePointer<sockaddr>, _ length: socklen_t) {
        let daemon = state.withLock { $0.clients.count < limits.connections ? $0.daemon : nil }
        guard let daemon else {
            close(descriptor)
            return
        }
        _ = MHD_add_connection(daemon.pointer, descriptor, address, length)
    }

    /// Called when libmicrohttpd has begun to serve a connection.
    func connected(_ handle: ConnectionHandle) -> ClientConnection {
        let client = ClientConnection(
            handle, presenting: state.withLock { $0.certificate },
            deadline: clock.monotonic() + limits.headDeadline.milliseconds)
        let isFirst = state.withLock { state in
            state.clients[ObjectIdentifier(client)] = client
            return state.clients.count == 1
        }
        if isFirst { watch.ring() }
        return client
    }

    func disconnected(_ client: ClientConnection) {
        client.closed()
        _ = state.withLock { $0.clients.removeValue(forKey: ObjectIdentifier(client)) }
        noteEnd()
    }

    func handlerStarted() { state.withLock { $0.handlers += 1 } }

    func handlerEnded() {
        state.withLock { $0.handlers -= 1 }
        noteEnd()
    }

    /// Makes a stop check its condition again.
    func noteEnd() { if isStopping { ending.ring() } }

    // MARK: The end

    /// Stops: responds 503 to new requests, on new connections too, wakes held handlers and waits up to `limit` for
    /// running ones. Then it rejects new connections and responds in place of the handlers that still run. Finally the
    /// library's threads end.
    ///
    /// - Parameter sending: The time after that in which clients can read the rest of their responses.
    package func stop(within limit: Duration, sending: Duration = .seconds(2)) async {
        let isFirst = state.withLock { state in
            defer { state.isStopping = true }
            return !state.isStopping
        }
        guard isFirst else { return }
        for client in allClients { client.request?.wake() }
        await wait(limit) { self.isQuiet }
        watch.stopAccepting()
        for client in allClients { client.request?.force() }
        await wait(sending) { !self.allClients.contains { $0.request?.isBusy == true } }
        await withCheckedContinuation { continuation in
            watch.end {
                self.stopDaemon()
                continuation.resume()
            }
        }
    }

    /// Whether no handler runs and no response to a request from before the stop is in flight.
    private var isQuiet: Bool {
        state.withLock { $0.handlers == 0 } && allClients.allSatisfy { $0.request?.isAwaited != true }
    }

    private func wait(_ limit: Duration, _ condition: () -> Bool) async {
        let end = clock.monotonic() + limit.milliseconds
        while !condition(), await ending.wait(until: end) {}
    }

    /// "It is an API violation to call MHD_stop_daemon while having suspended connections": then its threads stay.
    private func stopDaemon() {
        guard let daemon = state.withLock({ $0.daemon.take() }) else { return }
        guard !allClients.contains(where: { $0.request?.isHeld == true }) else {
            log.error("a connection is still held: the HTTP threads keep running")
            return
        }
        MHD_stop_daemon(daemon.pointer)
        Unmanaged.passUnretained(self).release()
    }
}

private func option(_ option: MHD_OPTION, _ value: Int) -> MHD_OptionItem {
    MHD_OptionItem(option: option, value: value, ptr_value: nil)
}

/// Lends a string as a C string to `body`.
private func withText<Result>(_ text: String, _ body: (UnsafeMutableRawPointer) -> Result) -> Result {
    let copy = strdup(text)!  // Only fails when memory is out.
    defer { free(copy) }
    return body(copy)
}
