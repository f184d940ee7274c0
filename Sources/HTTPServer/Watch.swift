import Base
import CLinux
import CMicroHTTPD
import Glibc

/// The thread that supplements libmicrohttpd: it accepts connections within the limit, enforces absolute deadlines,
/// notices departing clients of suspended connections, and lets a refused client read its response.
///
/// libmicrohttpd's timeout counts silence, so a slow trickle of bytes never ends. It does not read suspended
/// connections at all. A duplicate of each held request's descriptor waits here for `EPOLLRDHUP`.
final class Watch: Sendable {
    private struct State: Sendable {
        var listener: Int32?
        /// Whether the listener is not watched until the next sweep. If descriptors or memory are exhausted, a connection
        /// stays in the kernel's queue and the listener readable: watching it would keep a core busy.
        var isPaused = false
        /// When a connection last had to wait (monotonic ms), once the log has reported it; `nil` once it has reported
        /// the end.
        var shortAt: Int64?
        var requests: [UInt64: (descriptor: Int32, request: ServedRequest)] = [:]
        var numbers: [ObjectIdentifier: UInt64] = [:]
        var lingering: [UInt64: (descriptor: Int32, until: Int64)] = [:]
        var last: UInt64 = 1
        var ends: (@Sendable () -> Void)?
    }

    private static let bellNumber: UInt64 = 0
    private static let listenerNumber: UInt64 = 1
    private static let mostLingering = 256
    private static let lingerMilliseconds: Int64 = 2000
    /// Milliseconds without a waiting connection after which a shortage is over: each connection that ends lets one in.
    private static let calmMilliseconds: Int64 = 5000
    /// Descriptors that connections leave to files and to libdispatch, which ends the process if it cannot open one.
    private static let mostReserved: rlim_t = 64

    private let epoll: Int32
    private let bell: Int32
    private let tick: Int64
    private let state: Locked<State>

    init(listener: Int32, limits: ServerLimits) throws(ServerStartError) {
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        bell = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        guard epoll >= 0, bell >= 0 else { throw ServerStartError(call: "epoll", errno) }
        let shortest = [limits.headDeadline, limits.bodyDeadline, limits.streamGrace].min() ?? limits.headDeadline
        tick = max(10, min(250, shortest.milliseconds / 4))
        state = Locked(State(listener: listener))
        register(bell, Self.bellNumber, EPOLLIN)
        register(listener, Self.listenerNumber, EPOLLIN)
    }

    deinit {
        close(epoll)
        close(bell)
    }

    /// - Parameter server: Retained until the thread ends.
    func run(_ server: HTTPServer) {
        do {
            try SystemThread.start("http watch") {
                while !self.turn(server) {}
                self.closeAll()
                // Removed, because the closure retains the server, which retains this object.
                self.state.withLock { $0.ends.take() }?()
            }
        } catch {
            preconditionFailure("\(error)")
        }
    }

    // MARK: From other threads

    /// Watches the client of `request`.
    func add(_ request: ServedRequest) {
        guard let descriptor = request.client.duplicate() else { return }
        state.withLock { state in
            state.last += 1
            state.requests[state.last] = (descriptor, request)
            state.numbers[ObjectIdentifier(request)] = state.last
            register(descriptor, state.last, EPOLLRDHUP)
        }
    }

    func remove(_ request: ServedRequest) {
        let entry = state.withLock { state in
            state.numbers.removeValue(forKey: ObjectIdentifier(request)).flatMap {
                state.requests.removeValue(forKey: $0)
            }
        }
        if let entry { unregister(entry.descriptor) }
    }

    /// Reads the remaining bytes of a refused client for a moment: closing with unread bytes would send a reset, which
    /// can overtake the response.
    func linger(_ client: ClientConnection) {
        guard let descriptor = client.duplicate() else { return }
        let isKept = state.withLock { state in
            guard state.lingering.count < Self.mostLingering else { return false }
            state.last += 1
            state.lingering[state.last] = (descriptor, Clock.system.monotonic() + Self.lingerMilliseconds)
            register(descriptor, state.last, EPOLLIN)
            return true
        }
        if isKept { ring() } else { close(descriptor) }
    }

    func stopAccepting() {
        if let listener = state.withLock({ $0.listener.take() }) { unregister(listener) }
    }

    /// Ends the thread, which calls `last` before it exits.
    func end(_ last: @escaping @Sendable () -> Void) {
        state.withLock { $0.ends = last }
        ring()
    }

    func ring() {
        var one: UInt64 = 1
        _ = Glibc.write(bell, &one, 8)
    }

    // MARK: On the thread

    /// Waits for events and handles them. Returns whether the thread should end.
    private func turn(_ server: HTTPServer) -> Bool {
        var events = [epoll_event](repeating: epoll_event(), count: 64)
        let isIdle = state.withLock { $0.lingering.isEmpty && $0.shortAt == nil } && server.hasNoClients
        let count = epoll_wait(epoll, &events, Int32(events.count), isIdle ? -1 : Int32(tick))
        for event in events.prefix(Int(max(0, count))) { handle(event.data.u64, server) }
        // Checked after the bell was read, so that the next wait receives later rings.
        if state.withLock({ $0.ends != nil }) { return true }
        sweep(server)
        return false
    }

    private func handle(_ number: UInt64, _ server: HTTPServer) {
        switch number {
        case Self.bellNumber:
            var rings: UInt64 = 0
            _ = read(bell, &rings, 8)
        case Self.listenerNumber: accept(server)
        default:
            let (request, lingering) = state.withLock { ($0.requests[number]?.request, $0.lingering[number]) }
            if let request {
                remove(request)
                request.clientLeft()
            }
            if let lingering, drain(lingering.descriptor) { endLingering(number) }
        }
    }

    private func sweep(_ server: HTTPServer) {
        let now = Clock.system.monotonic()
        guard server.isSweepDue(at: now, tick: tick) else { return }
        for client in server.allClients { client.look(at: now, server) }
        resumeAccepting()
        reportEndOfShortage(at: now, server)
        let late = state.withLock { $0.lingering.filter { $0.value.until <= now }.map(\.key) }
        for number in late { endLingering(number) }
    }

    /// Passes new connections to libmicrohttpd; closes those over the limit.
    private func accept(_ server: HTTPServer) {
        for _ in 0..<64 {
            guard let listener = state.withLock({ $0.listener }) else { return }
            guard hasFreeDescriptors else { return pauseAccepting(EMFILE, server) }
            var address = sockaddr_storage()
            var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
            let descriptor = withUnsafeMutableBytes(of: &address) {
                accept4(
                    listener, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), &length,
                    Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue))
            }
            guard descriptor >= 0 else {
                if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) { pauseAccepting(errno, server) }
                return
            }
            withUnsafeBytes(of: &address) {
                server.admit(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), length)
            }
        }
    }

    /// Whether the lowest free descriptor, which the next connection would get, is below those that are reserved.
    private var hasFreeDescriptors: Bool {
        let next = fcntl(bell, F_DUPFD_CLOEXEC, 0)
        guard next >= 0 else { return false }
        close(next)
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return true }
        return rlim_t(next) < limit.rlim_cur - min(Self.mostReserved, limit.rlim_cur / 8)
    }

    private func pauseAccepting(_ code: Int32, _ server: HTTPServer) {
        let isNew = state.withLock { state in
            defer { (state.isPaused, state.shortAt) = (true, Clock.system.monotonic()) }
            if let listener = state.listener { watch(listener, 0) }
            return state.shortAt == nil
        }
        guard isNew else { return }
        server.log.warning(
            "connections cannot be accepted: they wait in the listener's queue",
            ("error", String(cString: strerror(code))))
    }

    private func resumeAccepting() {
        state.withLock { state in
            guard state.isPaused else { return }
            state.isPaused = false
            if let listener = state.listener { watch(listener, EPOLLIN.rawValue) }
        }
    }

    private func reportEndOfShortage(at now: Int64, _ server: HTTPServer) {
        guard let shortAt = state.withLock({ $0.shortAt }), shortAt + Self.calmMilliseconds <= now,
            hasFreeDescriptors
        else { return }
        state.withLock { $0.shortAt = nil }
        server.log.info("connections are accepted again")
    }

    /// Changes the events watched on the listener.
    private func watch(_ listener: Int32, _ events: UInt32) {
        var event = epoll_event()
        event.events = events
        event.data.u64 = Self.listenerNumber
        let code = epoll_ctl(epoll, EPOLL_CTL_MOD, listener, &event)
        precondition(code == 0, "epoll_ctl: \(errno)")
    }

    /// Reads and discards bytes. Returns whether the client is done.
    private func drain(_ descriptor: Int32) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 16) { buffer in
            for _ in 0..<16 {
                let count = recv(descriptor, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
                if count < 0 { return errno != EAGAIN && errno != EINTR }
                if count == 0 { return true }
            }
            return false
        }
    }

    private func endLingering(_ number: UInt64) {
        let entry = state.withLock { $0.lingering.removeValue(forKey: number) }
        if let entry { unregister(entry.descriptor) }
    }

    private func closeAll() {
        let descriptors = state.withLock { state -> [Int32] in
            defer {
                state.requests = [:]
                state.numbers = [:]
                state.lingering = [:]
            }
            return state.requests.values.map(\.descriptor) + state.lingering.values.map(\.descriptor)
        }
        for descriptor in descriptors { unregister(descriptor) }
        stopAccepting()
    }

    private func register(_ descriptor: Int32, _ number: UInt64, _ events: EPOLL_EVENTS) {
        var event = epoll_event()
        event.events = events.rawValue
        event.data.u64 = number
        let code = epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event)
        precondition(code == 0 || errno == ENOMEM || errno == ENOSPC, "epoll_ctl: \(errno)")
    }

    /// Removes `descriptor` from epoll before closing it: a duplicate of the socket would keep it registered.
    private func unregister(_ descriptor: Int32) {
        var event = epoll_event()
        _ = epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, &event)
        close(descriptor)
    }
}
