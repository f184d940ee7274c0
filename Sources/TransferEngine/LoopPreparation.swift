import Base
import CCurl
import Core
import Glibc

/// What an exchange waits for before libcurl gets it: judged addresses, and the files it reads and goes on with.
extension TransferLoop {
    func prepare(_ exchange: Exchange) {
        let request = exchange.request
        if case .file(let path, _, _) = request.body { openBody(exchange, path) }
        if exchange.resumeOffset > 0 {
            exchange.preparations.insert(.prefix)
            openFile(exchange, prefix: exchange.resumeOffset)
        }
        switch request.body {
        case .bytes(let bytes): exchange.body = BodySource(bytes)
        case .none, .file: break
        }
        if let address = exchange.url.address {
            guard exchange.mayReach(address, exchange.url.port) else { return fail(exchange, .egressDenied) }
        } else if request.proxy == nil || request.proxy?.kind == .socks5 {
            guard lookUp(exchange, .target, exchange.url.host) else { return }
        }
        if let proxy = request.proxy {
            if let address = IPAddress(proxy.host) {
                guard exchange.mayReach(address, proxy.port) else { return fail(exchange, .egressDenied) }
            } else {
                guard lookUp(exchange, .proxy, proxy.host) else { return }
            }
        }
        launchIfReady(exchange)
    }

    /// False where the exchange failed already.
    func lookUp(_ exchange: Exchange, _ name: Exchange.Name, _ host: String) -> Bool {
        exchange.preparations.insert(name.preparation)
        if name == .target { exchange.metrics.domainLookupStart = surroundings.clock.wall() }
        let (id, mailbox) = (exchange.id, mailbox)
        let answer = surroundings.resolver.lookUp(host, for: id, pool: exchange.request.pool) {
            mailbox.post(.named(id, name, $0))
        }
        switch answer {
        case .known(let resolution): return settle(exchange, name, resolution)
        case .underWay: break
        case .waits: exchange.waitsForTurn.insert(name.preparation)
        }
        noteDeadline(of: exchange)
        return true
    }

    /// A name that waited for its turn is looked up now: from here on the time counts.
    func turnCame(_ exchange: Exchange, _ name: Exchange.Name) {
        guard case .preparing = exchange.stage, exchange.waitsForTurn.remove(name.preparation) != nil else { return }
        exchange.namesSince = state.now
        if name == .target { exchange.metrics.domainLookupStart = surroundings.clock.wall() }
        noteDeadline(of: exchange)
    }

    /// Gives up the turns of an exchange that ends before they came.
    func leaveTurns(of exchange: Exchange) {
        if exchange.waitsForTurn.contains(.target) { surroundings.resolver.leave(exchange.url.host, exchange.id) }
        if exchange.waitsForTurn.contains(.proxy), let proxy = exchange.request.proxy {
            surroundings.resolver.leave(proxy.host, exchange.id)
        }
        exchange.waitsForTurn = []
    }

    func resolved(_ exchange: Exchange, _ name: Exchange.Name, _ resolution: Resolution) {
        guard case .preparing = exchange.stage, settle(exchange, name, resolution) else { return }
        launchIfReady(exchange)
    }

    /// Judges all answers of the resolver: one that is forbidden refuses the attempt.
    func settle(_ exchange: Exchange, _ name: Exchange.Name, _ resolution: Resolution) -> Bool {
        exchange.preparations.remove(name.preparation)
        exchange.waitsForTurn.remove(name.preparation)
        if name == .target { exchange.metrics.domainLookupEnd = surroundings.clock.wall() }
        guard case .addresses(let addresses) = resolution else {
            let fault: TransferFault = resolution == .doesNotExist ? .nameDoesNotExist : .couldNotResolve
            fail(exchange, name == .proxy ? .proxyNotResolved : fault)
            return false
        }
        let host = name == .proxy ? exchange.request.proxy?.host ?? "" : exchange.url.host
        let port = name == .proxy ? exchange.request.proxy?.port ?? 0 : exchange.url.port
        let isPermitted = addresses.allSatisfy { exchange.mayReach($0, port) }
        guard isPermitted, !addresses.isEmpty, addresses.count <= Self.maximumAnswers else {
            fail(exchange, .egressDenied)
            return false
        }
        let list = addresses.map { address in
            if case .v6 = address { "[\(address)]" } else { address.description }
        }
        // "+": libcurl forgets it again after a minute.
        exchange.pins.append("+\(host):\(port):\(list.joined(separator: ","))")
        return true
    }

    func openBody(_ exchange: Exchange, _ path: String) {
        exchange.preparations.insert(.body)
        let (id, mailbox) = (exchange.id, mailbox)
        let isTaken = disk(of: exchange).post {
            let result = Result { () throws(DiskError) in try OpenFile.open(path, O_RDONLY) }
            mailbox.post(.bodyOpened(id, result))
        }
        if !isTaken { mailbox.post(.bodyOpened(id, .failure(DiskError("open", errno: ESHUTDOWN)))) }
    }

    func bodyOpened(_ exchange: Exchange, _ result: Result<OpenFile, DiskError>) {
        guard case .preparing = exchange.stage, case .file(_, let offset, let length) = exchange.request.body else {
            return
        }
        exchange.preparations.remove(.body)
        switch result {
        case .success(let file):
            exchange.body = BodySource(file, offset: offset, length: length)
            launchIfReady(exchange)
        case .failure(let error): fail(exchange, .bodySource(errno: error.errno))
        }
    }

    func launchIfReady(_ exchange: Exchange) {
        guard exchange.preparations.isEmpty, case .preparing = exchange.stage else { return }
        guard let easy = spare.popLast() ?? Easy() else { return fail(exchange, .other(curlCode: 27)) }
        exchange.avoidsHTTP2 = surroundings.calm.contains(exchange.url, at: state.now)
        do throws(CurlError) {
            try exchange.configure(easy)
        } catch {
            return fail(exchange, .badRequest, error.code)
        }
        let pool = pool(exchange.request.pool)
        exchange.stage = .running
        exchange.easy = easy
        exchange.pool = pool
        exchange.launched = surroundings.clock.wall()
        noteDeadline(of: exchange)
        pool.add(easy)
    }
}
