import Base
import CCurl
import Glibc
import Synchronization

/// How exchanges end: taken from libcurl, their files synced, then told.
extension TransferLoop {
    /// Takes from libcurl what it is done with, and what its callbacks asked for.
    func collect(_ pool: ConnectionPool) {
        while let (raw, code) = pool.nextFinished() {
            guard let exchange = Exchange.of(raw) else { continue }
            if case .probing(let ending) = exchange.stage {
                probed(exchange, ending)
            } else {
                finish(exchange, exchange.ending(code))
            }
        }
    }

    func finish(_ exchange: Exchange, _ ending: Exchange.Ending) {
        release(exchange, isSound: ending.outcome == .complete)
        if case .failed(let fault) = ending.outcome { learn(fault, of: exchange) }
        if case .failed(let fault) = ending.outcome, fault.isTrustFailure, endAt == nil {
            return probe(exchange, ending)
        }
        conclude(exchange, ending)
    }

    /// Remembers what the next exchange with the same origin should do otherwise.
    private func learn(_ fault: TransferFault, of exchange: Exchange) {
        switch fault {
        case .connectFailed, .connectTimedOut, .noConnectivity, .proxyFailed:
            // Perhaps the name leads elsewhere by now.
            surroundings.resolver.forget(exchange.url.host)
            if let proxy = exchange.request.proxy { surroundings.resolver.forget(proxy.host) }
        case .http2Calm: surroundings.calm.note(exchange.url, at: state.now)
        default: break
        }
    }

    func fail(_ exchange: Exchange, _ fault: TransferFault, _ code: CURLcode = CURLE_OK) {
        if case .concluding = exchange.stage {
            exchange.fault = exchange.fault ?? fault
            return
        }
        release(exchange)
        conclude(exchange, Exchange.Ending(outcome: .failed(fault), code: code, message: ""))
    }

    func stop(_ exchange: Exchange) {
        switch exchange.stage {
        case .concluding: return
        case .probing(let ending):
            giveBackHandle(of: exchange)
            conclude(exchange, ending)
        case .preparing, .running:
            release(exchange)
            conclude(exchange, .stopped)
        }
    }

    /// Takes the handle out of its pool, after asking it for its facts.
    func release(_ exchange: Exchange, isSound: Bool = false) {
        guard let easy = exchange.easy else { return }
        exchange.noteFacts(of: easy)
        giveBackHandle(of: exchange, isSound: isSound)
    }

    /// - Parameter isSound: Whether all went well. Of what did not, `curl_easy_reset` leaves traces: an errno by which the
    ///   next fault would be told apart. Of HTTP/2 it leaves that a stream was refused, even where all went well in the
    ///   end: the next request that gets no answer would be sent twice.
    func giveBackHandle(of exchange: Exchange, isSound: Bool = false) {
        guard let easy = exchange.easy, let pool = exchange.pool else { return }
        let isSpent =
            !isSound || easy.number(CURLINFO_OS_ERRNO) != 0
            || easy.number(CURLINFO_HTTP_VERSION) >= Int(CURL_HTTP_VERSION_2_0)
        pool.remove(easy)
        easy.reset()
        if !isSpent, spare.count < Self.maximumSpare { spare.append(easy) }
        exchange.easy = nil
        exchange.pool = nil
        if pool.active == 0, let index = retired.firstIndex(where: { $0 === pool }) {
            retired.remove(at: index)
            pool.close()
        }
    }

    /// Asks a server that was not trusted for its key, so that somebody can decide about it.
    func probe(_ exchange: Exchange, _ ending: Exchange.Ending) {
        guard let easy = spare.popLast() ?? Easy() else { return conclude(exchange, ending) }
        do throws(CurlError) {
            try exchange.configureProbe(easy)
        } catch { return conclude(exchange, ending) }
        easy.set(CURLOPT_PRIVATE, Unmanaged.passUnretained(exchange).toOpaque())
        exchange.stage = .probing(ending)
        exchange.easy = easy
        let pool = pool(exchange.request.pool)
        exchange.pool = pool
        pool.add(easy)
    }

    func probed(_ exchange: Exchange, _ ending: Exchange.Ending) {
        var ending = ending
        if let lines = exchange.easy?.serverCertificate, let pem = lines.first(where: { $0.hasPrefix("Cert:") }) {
            ending.serverPublicKey = ServerKey.pin(ofPEM: pem)
        }
        giveBackHandle(of: exchange)
        conclude(exchange, ending)
    }

    func conclude(_ exchange: Exchange, _ outcome: ExchangeOutcome) {
        conclude(exchange, Exchange.Ending(outcome: outcome, code: CURLE_OK, message: ""))
    }

    /// Waits for the disk, syncs what is new, then tells.
    func conclude(_ exchange: Exchange, _ ending: Exchange.Ending) {
        leaveTurns(of: exchange)
        exchange.stage = .concluding(ending)
        if exchange.isOpening { return exchange.meter.isAbandoned.store(true, ordering: .relaxed) }
        // What begins anew must not leave the old bytes behind, even where no new one came.
        if exchange.wantedPrefix != nil, exchange.resumeOffset > 0 { return serve(exchange) }
        guard exchange.sink.unsynced > 0 || exchange.isSyncing, let file = exchange.sink.file else {
            return deliver(exchange, ending)
        }
        let (id, mailbox) = (exchange.id, mailbox)
        let isTaken = disk(of: exchange).post {
            do throws(DiskError) {
                try file.sync()
                mailbox.post(.closed(id, nil))
            } catch { mailbox.post(.closed(id, error)) }
        }
        if !isTaken { closed(exchange, DiskError("fdatasync", errno: ESHUTDOWN)) }
    }

    func closed(_ exchange: Exchange, _ error: DiskError?) {
        guard case .concluding(let ending) = exchange.stage else { return }
        if let error { exchange.fault = exchange.fault ?? .disk(errno: error.errno) }
        deliver(exchange, ending)
    }

    func deliver(_ exchange: Exchange, _ ending: Exchange.Ending) {
        var ending = ending
        // The disk has the last word on what seemed well.
        if ending.outcome == .complete, let fault = exchange.fault { ending.outcome = .failed(fault) }
        if ending.outcome == .failed(.egressDenied), let denied = exchange.denied {
            surroundings.log.warning(
                "an exchange was refused an address", ("host", exchange.url.host), ("address", denied.address),
                ("port", denied.port), ("pool", exchange.request.pool))
        }
        if exchange.hasTwoFramings {
            surroundings.log.warning(
                "an answer named a length and came in chunks: the chunks were believed", ("host", exchange.url.host),
                ("port", exchange.url.port), ("pool", exchange.request.pool))
        }
        exchanges[exchange.id] = nil
        surroundings.directory.leave(exchange.id)
        surroundings.report(.ended(exchange.id, exchange.result(ending)))
    }

    /// At the very end, for exchanges that the disk kept waiting too long.
    func abandon(_ exchange: Exchange) {
        release(exchange)
        surroundings.directory.leave(exchange.id)
        let ending = Exchange.Ending(outcome: .stopped, code: CURLE_OK, message: "")
        surroundings.report(.ended(exchange.id, exchange.result(ending)))
    }
}

extension Exchange {
    /// The exchange that a handle in a pool belongs to; nil for handles of libcurl's own.
    static func of(_ easy: UnsafeMutableRawPointer) -> Exchange? {
        var context: UnsafeMutablePointer<CChar>?
        guard ccurl_easy_get_string(easy, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { return nil }
        // The exchange set itself as the handle's private pointer and lives as long as the handle is in the pool.
        return Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
    }
}
