import Base
import CCurl
import Core
import Files

/// The preparations of an exchange before libcurl receives it: permitted addresses, body and partial file.
extension TransferLoop {
    func prepare(_ exchange: Exchange, _ preparation: Exchange.Preparation) {
        let request = exchange.request
        switch request.body {
        case .none: break
        case .bytes(let bytes, let offset):
            var seal = request.bodySHA256.map { BodySource.Seal(sha256: $0) }
            bytes.prefix(Int(offset)).withUnsafeBytes { seal?.before.update($0) }
            preparation.body = BodySource(Array(bytes.dropFirst(Int(offset))), seal)
        case .file(let path, let offset, let length):
            preparation.needs.insert(.body)
            openBody(exchange, path, length, digesting: request.bodySHA256 == nil ? 0 : offset)
        case .fetched(let fetch, let offset, let length):
            let (id, commands) = (exchange.id, commands)
            let ahead = ReadAhead(fetch, to: offset + length, bodyBuffers) { commands.post(.bodyRead($0), to: id) }
            let seal = offset > 0 ? nil : request.bodySHA256.map { BodySource.Seal(sha256: $0) }
            preparation.body = BodySource(ahead, offset: offset, length: length, seal)
        }
        if exchange.resumeOffset > 0 {
            preparation.needs.insert(.prefix)
            openFile(exchange, prefix: exchange.resumeOffset)
        }
        if let address = exchange.url.address {
            guard exchange.mayReach(address, exchange.url.port) else { return fail(exchange, .egressDenied) }
        } else if request.proxy == nil || request.proxy?.kind == .socks5 {
            guard lookUp(exchange, preparation, .target, exchange.url.host) else { return }
        }
        if let proxy = request.proxy {
            if let address = IPAddress(proxy.host) {
                guard exchange.mayReach(address, proxy.port) else { return fail(exchange, .egressDenied) }
            } else {
                guard lookUp(exchange, preparation, .proxy, proxy.host) else { return }
            }
        }
        launchIfReady(exchange, preparation)
    }

    /// False if the exchange has failed already.
    private func lookUp(
        _ exchange: Exchange, _ preparation: Exchange.Preparation, _ name: Exchange.Name, _ host: String
    ) -> Bool {
        preparation.needs.insert(name.need)
        if name == .target { exchange.metrics.domainLookupStartDate = wallTime }
        let (id, commands) = (exchange.id, commands)
        let answer = surroundings.resolver.lookUp(host, for: id, pool: exchange.request.pool) {
            commands.post(.named(name, $0), to: id)
        }
        switch answer {
        case .known(let resolution): return settle(exchange, preparation, name, resolution)
        case .underWay: break
        case .waits: preparation.waitsForTurn.insert(name.need)
        }
        noteDeadline(of: exchange)
        return true
    }

    /// Records that the look-up of a waiting name begins: its time limit counts from here.
    func turnCame(_ exchange: Exchange, _ name: Exchange.Name) {
        guard case .preparing(let preparation) = exchange.stage,
            preparation.waitsForTurn.remove(name.need) != nil
        else { return }
        preparation.namesSince = state.now
        if name == .target { exchange.metrics.domainLookupStartDate = wallTime }
        noteDeadline(of: exchange)
    }

    /// Removes an ending exchange from the queue of look-ups.
    func leaveTurns(of exchange: Exchange, _ preparation: Exchange.Preparation) {
        if preparation.waitsForTurn.contains(.target) { surroundings.resolver.leave(exchange.url.host, exchange.id) }
        if preparation.waitsForTurn.contains(.proxy), let proxy = exchange.request.proxy {
            surroundings.resolver.leave(proxy.host, exchange.id)
        }
    }

    func resolved(_ exchange: Exchange, _ name: Exchange.Name, _ resolution: Resolution) {
        guard case .preparing(let preparation) = exchange.stage,
            settle(exchange, preparation, name, resolution)
        else { return }
        launchIfReady(exchange, preparation)
    }

    /// Checks all addresses of the resolver: a denied one fails the exchange.
    private func settle(
        _ exchange: Exchange, _ preparation: Exchange.Preparation, _ name: Exchange.Name, _ resolution: Resolution
    ) -> Bool {
        preparation.needs.remove(name.need)
        preparation.waitsForTurn.remove(name.need)
        if name == .target { exchange.metrics.domainLookupEndDate = wallTime }
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
        let list = addresses.map(\.description.bracketed)
        // "+": libcurl discards the entry after a minute.
        exchange.pins.append("+\(host):\(port):\(list.joined(separator: ","))")
        return true
    }

    private func openBody(_ exchange: Exchange, _ path: String, _ length: Int64, digesting offset: Int64) {
        let (id, commands) = (exchange.id, commands)
        BodyOpening(path, length, digesting: offset, disk: disk(of: exchange)).begin {
            commands.post(.bodyOpened($0), to: id)
        }
    }

    func bodyOpened(_ exchange: Exchange, _ result: Result<OpenedBody, SystemError>) {
        guard case .preparing(let preparation) = exchange.stage,
            case .file(_, let offset, let length) = exchange.request.body
        else { return }
        preparation.needs.remove(.body)
        switch result {
        case .success(let opened):
            let (id, commands) = (exchange.id, commands)
            let ahead = ReadAhead(opened.file, to: offset + length, disk(of: exchange), bodyBuffers) {
                commands.post(.bodyRead($0), to: id)
            }
            let seal = exchange.request.bodySHA256.map { BodySource.Seal(sha256: $0, before: opened.digest) }
            preparation.body = BodySource(ahead, offset: offset, length: length, seal)
            launchIfReady(exchange, preparation)
        case .failure(let error): fail(exchange, .bodySource(errno: error.errno))
        }
    }

    func bodyRead(_ exchange: Exchange, _ arrival: ReadAhead.Arrival) {
        guard case .running(let running) = exchange.stage else { return }
        running.take(arrival)
        goOn(exchange)
    }

    func launchIfReady(_ exchange: Exchange, _ preparation: Exchange.Preparation) {
        guard preparation.needs.isEmpty else { return }
        guard let easy = spare.popLast() ?? Easy() else { return fail(exchange, .other(curlCode: 27)) }
        let handle = Exchange.Handle(easy: easy, pool: pool(exchange.request.pool))
        let running = Exchange.Running(exchange, preparation, handle, launched: surroundings.clock.wall())
        do throws(CurlError) {
            try exchange.configure(running, avoidsHTTP2: avoidsHTTP2(exchange))
        } catch {
            return fail(exchange, .badRequest, error.code)
        }
        exchange.stage = .running(running)
        noteDeadline(of: exchange)
        handle.pool.add(easy)
    }

    private var wallTime: Timestamp { Timestamp(milliseconds: surroundings.clock.wall()) }

    /// Whether the origin sent ENHANCE_YOUR_CALM.
    func avoidsHTTP2(_ exchange: Exchange) -> Bool { surroundings.calm.contains(exchange.url, at: state.now) }
}
