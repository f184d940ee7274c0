import Base
import CCurl
package import Core
import Glibc

/// What a look-up of a name gave.
package enum Resolution: Hashable, Sendable {
    case addresses([IPAddress])
    /// With authority: there is no such name, or it has no address.
    case doesNotExist
    /// No answer, or one that may be different the next time.
    case failed
}

/// Looks names up on threads of its own.
///
/// libcurl's threaded resolver blocks its loop for seconds when a look-up is abandoned, and would connect to answers
/// that nobody judged. Concurrent look-ups of one name are one; answers are kept for 30 s.
final class Resolver: Sendable {
    typealias Answer = @Sendable (Resolution) -> Void

    private struct Names {
        var known: [String: (resolution: Resolution, until: Int64)] = [:]
        var waiting: [String: [Answer]] = [:]
    }

    private static let keep: Int64 = 30_000
    private static let maximumKnown = 10_000

    private let names = Locked(Names())
    private let queue = WorkQueue()
    private let monotonic: @Sendable () -> Int64
    private let resolve: @Sendable (String) -> Resolution

    init(
        threads: Int, clock: Clock, resolve: @escaping @Sendable (String) -> Resolution
    ) throws(EngineError) {
        monotonic = clock.monotonic
        self.resolve = resolve
        for index in 0..<max(1, threads) {
            let queue = queue
            try EngineThread.start("resolver-\(index)") { queue.run() }
        }
    }

    deinit { queue.close() }

    func close() { queue.close() }

    /// The answer where it is known, else nil, and `answer` is called later on a resolver thread.
    func lookUp(_ name: String, _ answer: @escaping Answer) -> Resolution? {
        let now = monotonic()
        let (known, isFirst): (Resolution?, Bool) = names.withLock { names in
            if let entry = names.known[name] {
                if entry.until > now { return (entry.resolution, false) }
                names.known[name] = nil
            }
            names.waiting[name, default: []].append(answer)
            return (nil, names.waiting[name]?.count == 1)
        }
        if isFirst {
            let isTaken = queue.add { [weak self] in self?.work(on: name) }
            if !isTaken { finish(name, .failed) }
        }
        return known
    }

    /// Looks a name up anew the next time.
    func forget(_ name: String) { names.withLock { _ = $0.known.removeValue(forKey: name) } }

    private func work(on name: String) { finish(name, resolve(name)) }

    private func finish(_ name: String, _ resolution: Resolution) {
        let until = monotonic() + Self.keep
        let answers = names.withLock { names in
            if case .addresses = resolution {
                if names.known.count >= Self.maximumKnown { names.known.removeAll() }
                names.known[name] = (resolution, until)
            }
            return names.waiting.removeValue(forKey: name) ?? []
        }
        for answer in answers { answer(resolution) }
    }

    /// Asks the system. The corresponding C function is `getaddrinfo`; its own time limits apply (resolv.conf).
    static func system(_ name: String) -> Resolution {
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
    /// The address and port of a `sockaddr_in` or `sockaddr_in6`; nil for other families.
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
