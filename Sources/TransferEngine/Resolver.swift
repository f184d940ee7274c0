import Base
import CCurl
package import Core
import Glibc

/// The result of a name look-up.
package enum Resolution: Hashable, Sendable {
    case addresses([IPAddress])
    /// Authoritative: the name does not exist, or has no address.
    case doesNotExist
    /// No response, or a temporary failure.
    case failed
}

/// Resolves names, each on a separate thread, with the system's `getaddrinfo`.
///
/// libcurl's threaded resolver blocks its loop for seconds when a look-up is abandoned, and would connect to addresses
/// that were not checked. Threads instead of c-ares: `getaddrinfo` resolves like all other programs on the machine
/// (`nsswitch.conf` with its modules, `gai.conf`, a changed `resolv.conf`). They live only while there are names.
///
/// Concurrent look-ups of one name share a result, whichever app needs it. Results are kept for 30 s. ``LookUpTurns``
/// chooses the next name.
final class Resolver: Sendable {
    /// The state of a name at the request for it.
    enum Answer: Hashable, Sendable {
        case known(Resolution)
        /// It is being looked up.
        case underWay
        /// Queued behind other names.
        case waits
    }

    /// A later report about a name that was not known.
    enum News: Hashable, Sendable {
        /// The look-up has begun.
        case asked
        case answered(Resolution)
    }

    private struct Waiter {
        let exchange: ExchangeID
        let pool: Int64
        let tell: @Sendable (News) -> Void
    }

    private struct Names {
        var known: [String: (resolution: Resolution, until: Int64)] = [:]
        var waiting: [String: [Waiter]] = [:]
        var underWay: Set<String> = []
        var turns: LookUpTurns
        var isClosed = false
    }

    private static let keep: Int64 = 30_000
    private static let maximumKnown = 10_000
    /// `getaddrinfo` and the modules it loads need much less.
    private static let stackSize = 512 << 10

    private let names: Locked<Names>
    private let monotonic: @Sendable () -> Int64
    private let resolve: @Sendable (String) -> Resolution

    init(_ limits: LookUpLimits, clock: Clock, resolve: @escaping @Sendable (String) -> Resolution) {
        names = Locked(Names(turns: LookUpTurns(limits)))
        monotonic = clock.monotonic
        self.resolve = resolve
    }

    /// Rejects further names. The threads end with their current look-ups.
    func close() {
        names.withLock { names in
            names.isClosed = true
            names.turns.removeAll()
        }
    }

    /// The result if it is known; otherwise `tell` is called later, on a resolver thread.
    ///
    /// - Parameter pool: The pool of the exchange: pools take turns.
    func lookUp(
        _ name: String, for exchange: ExchangeID, pool: Int64, _ tell: @escaping @Sendable (News) -> Void
    ) -> Answer {
        let now = monotonic()
        let (answer, next) = names.withLock { names -> (Answer, Next?) in
            if let entry = names.known[name] {
                if entry.until > now { return (.known(entry.resolution), nil) }
                names.known[name] = nil
            }
            guard !names.isClosed else { return (.known(.failed), nil) }
            names.waiting[name, default: []].append(Waiter(exchange: exchange, pool: pool, tell: tell))
            if names.underWay.contains(name) { return (.underWay, nil) }
            names.turns.add(name, for: pool)
            let next = Self.next(&names)
            return (next?.turn.name == name ? .underWay : .waits, next)
        }
        if let next { start(next, except: exchange) }
        return answer
    }

    /// Removes an exchange's wait for a name. A name that no other exchange needs is removed from the queue.
    func leave(_ name: String, _ exchange: ExchangeID) {
        names.withLock { names in
            guard let index = names.waiting[name]?.firstIndex(where: { $0.exchange == exchange }),
                let waiter = names.waiting[name]?.remove(at: index)
            else { return }
            let others = names.waiting[name] ?? []
            if others.isEmpty { names.waiting[name] = nil }
            if !others.contains(where: { $0.pool == waiter.pool }) { names.turns.remove(name, of: waiter.pool) }
        }
    }

    /// Discards the known result of a name.
    func forget(_ name: String) { names.withLock { _ = $0.known.removeValue(forKey: name) } }

    /// A name whose look-up starts, and the exchanges that wait for it.
    private struct Next {
        let turn: LookUpTurns.Turn
        let waiters: [Waiter]
    }

    private static func next(_ names: inout Names) -> Next? {
        guard let turn = names.turns.next() else { return nil }
        names.underWay.insert(turn.name)
        return Next(turn: turn, waiters: names.waiting[turn.name] ?? [])
    }

    /// - Parameter exchange: Not notified, because the call itself returns its state.
    private func start(_ next: Next, except exchange: ExchangeID) {
        for waiter in next.waiters where waiter.exchange != exchange { waiter.tell(.asked) }
        do throws(SystemError) {
            try SystemThread.start("resolver", stackSize: Self.stackSize) { self.work(next.turn) }
        } catch {
            var turn: LookUpTurns.Turn? = next.turn
            while let failed = turn { turn = finish(failed, .failed) }
        }
    }

    /// The main function of a thread, which ends when no further name may be looked up.
    private func work(_ first: LookUpTurns.Turn) {
        var turn: LookUpTurns.Turn? = first
        while let current = turn { turn = finish(current, resolve(current.name)) }
    }

    /// Reports a result to all exchanges that wait for it.
    ///
    /// - Returns: The next turn, if any.
    private func finish(_ turn: LookUpTurns.Turn, _ resolution: Resolution) -> LookUpTurns.Turn? {
        let until = monotonic() + Self.keep
        let (waiters, next) = names.withLock { names -> ([Waiter], Next?) in
            if case .addresses = resolution {
                if names.known.count >= Self.maximumKnown { names.known.removeAll() }
                names.known[turn.name] = (resolution, until)
            }
            names.underWay.remove(turn.name)
            names.turns.end(turn)
            let waiters = names.waiting.removeValue(forKey: turn.name) ?? []
            return (waiters, Self.next(&names))
        }
        for waiter in waiters { waiter.tell(.answered(resolution)) }
        for waiter in next?.waiters ?? [] { waiter.tell(.asked) }
        return next?.turn
    }
}

extension Resolution {
    /// Calls `getaddrinfo`, whose own time limits apply (resolv.conf).
    @Sendable package static func ofSystem(_ name: String) -> Resolution {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, nil, &hints, &list)
        guard code == 0 else {
            // EAI_NODATA (-5) is hidden behind _GNU_SOURCE.
            return code == EAI_NONAME || code == -5 ? .doesNotExist : .failed
        }
        defer { freeaddrinfo(list) }
        var addresses: [IPAddress] = []
        var entry = list
        while let node = entry {
            if let socketAddress = node.pointee.ai_addr, let (address, _) = SocketAddress.read(socketAddress),
                !addresses.contains(address)
            {
                addresses.append(address)
            }
            entry = node.pointee.ai_next
        }
        return addresses.isEmpty ? .doesNotExist : .addresses(addresses)
    }
}

enum SocketAddress {
    /// The address and port of a `sockaddr_in` or `sockaddr_in6`; `nil` for other families.
    static func read(_ pointer: UnsafePointer<sockaddr>) -> (address: IPAddress, port: UInt16)? {
        let raw = UnsafeRawPointer(pointer)
        switch Int32(pointer.pointee.sa_family) {
        case AF_INET:
            var value = raw.loadUnaligned(as: sockaddr_in.self)
            guard let address = withUnsafeBytes(of: &value.sin_addr, { IPAddress(bytes: $0) }) else { return nil }
            return (address, UInt16(bigEndian: value.sin_port))
        case AF_INET6:
            var value = raw.loadUnaligned(as: sockaddr_in6.self)
            guard let address = withUnsafeBytes(of: &value.sin6_addr, { IPAddress(bytes: $0) }) else { return nil }
            return (address, UInt16(bigEndian: value.sin6_port))
        default: return nil
        }
    }
}
