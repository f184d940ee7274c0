import Base
import CCurl
import Core
import Files
import Glibc
import Synchronization

/// The end of exchanges: removed from libcurl, their files synced, then reported.
extension TransferLoop {
    /// Ends the exchanges that libcurl has finished.
    func collect(_ pool: ConnectionPool) {
        while let (raw, code) = pool.nextFinished() {
            guard let exchange = Exchange.of(raw) else { continue }
            switch exchange.stage {
            case .running(let running): finish(running, code)
            case .probing(let handle, let result):
                giveBack(handle)
                conclude(exchange, result)
            case .preparing, .concluding: break
            }
        }
    }

    func finish(_ running: Exchange.Running, _ code: CURLcode) {
        let exchange = running.exchange
        let (outcome, message) = running.ending(code)
        let result = takeBack(running, outcome, code, message, isSound: outcome == .complete)
        guard case .failed(let fault) = outcome else { return conclude(exchange, result) }
        learn(fault, of: exchange)
        if fault.isTrustFailure, endAt == nil { probe(exchange, result) } else { conclude(exchange, result) }
    }

    /// Applies the consequences of a fault for the next exchange with the same origin.
    private func learn(_ fault: TransferFault, of exchange: Exchange) {
        switch fault {
        case .connectFailed, .connectTimedOut, .noConnectivity, .proxyFailed:
            // The name may have changed its addresses.
            surroundings.resolver.forget(exchange.url.host)
            if let proxy = exchange.request.proxy { surroundings.resolver.forget(proxy.host) }
        case .http2Calm: surroundings.calm.note(exchange.url, at: state.now)
        default: break
        }
    }

    /// Sets the offset after which content is not wanted. An exchange that has all content before it is complete.
    func shorten(_ exchange: Exchange, to offset: Int64) {
        exchange.sink.end = min(exchange.sink.end, offset)
        guard case .running(let running) = exchange.stage, exchange.sink.length >= offset else { return }
        running.cut = .enough
        finish(running, CURLE_WRITE_ERROR)
    }

    func fail(_ exchange: Exchange, _ fault: TransferFault, _ code: CURLcode = CURLE_OK) {
        end(exchange, .failed(fault), code)
    }

    /// Ends an exchange. No effect on an exchange that is ending, except for a failure of the disk.
    func end(_ exchange: Exchange, _ outcome: ExchangeOutcome, _ code: CURLcode = CURLE_OK) {
        guard case .concluding(var result) = exchange.stage else {
            return conclude(exchange, withdraw(exchange, outcome, code))
        }
        // A failure of the disk overrides success.
        guard result.outcome == .complete, case .failed = outcome else { return }
        result.outcome = outcome
        exchange.stage = .concluding(result)
    }

    /// Removes an exchange from its current stage. An outcome that is known already is kept.
    private func withdraw(
        _ exchange: Exchange, _ outcome: ExchangeOutcome, _ code: CURLcode = CURLE_OK
    ) -> ExchangeResult {
        switch exchange.stage {
        case .preparing(let preparation):
            leaveTurns(of: exchange, preparation)
            return exchange.result(outcome, code)
        case .running(let running): return takeBack(running, outcome, code)
        case .probing(let handle, let result):
            giveBack(handle)
            return result
        case .concluding(let result): return result
        }
    }

    /// Removes the handle from its pool, after querying its facts.
    private func takeBack(
        _ running: Exchange.Running, _ outcome: ExchangeOutcome, _ code: CURLcode, _ message: String = "",
        isSound: Bool = false
    ) -> ExchangeResult {
        let exchange = running.exchange
        let result = running.result(outcome, code, message)
        giveBack(running.handle, isSound: isSound)
        if running.receiving.answer?.hasTwoFramings ?? false {
            surroundings.log.warning(
                "a response had a Content-Length and chunks: the length was ignored", ("host", exchange.url.host),
                ("port", exchange.url.port), ("pool", exchange.request.pool))
        }
        return result
    }

    /// - Parameter isSound: Whether the exchange succeeded. `curl_easy_reset` is not complete: a failure leaves an
    ///   errno that would be read as the next failure's, and HTTP/2 may leave the mark of a refused stream, because of
    ///   which libcurl would repeat the next request without a response.
    private func giveBack(_ handle: Exchange.Handle, isSound: Bool = false) {
        let (easy, pool) = (handle.easy, handle.pool)
        let isSpent =
            !isSound || easy.number(CURLINFO_OS_ERRNO) != 0
            || easy.number(CURLINFO_HTTP_VERSION) >= Int(CURL_HTTP_VERSION_2_0)
        pool.remove(easy)
        easy.reset()
        if !isSpent, spare.count < Self.maximumSpare { spare.append(easy) }
        if pool.active == 0, let index = retired.firstIndex(where: { $0 === pool }) {
            retired.remove(at: index)
            pool.close()
        }
    }

    /// Reads the key of an untrusted server, so that the app can decide about it.
    private func probe(_ exchange: Exchange, _ result: ExchangeResult) {
        guard let easy = spare.popLast() ?? Easy() else { return conclude(exchange, result) }
        do throws(CurlError) {
            try exchange.configureProbe(easy, avoidsHTTP2: avoidsHTTP2(exchange))
        } catch { return conclude(exchange, result) }
        let handle = Exchange.Handle(easy: easy, pool: pool(exchange.request.pool))
        exchange.stage = .probing(handle, result)
        handle.pool.add(easy)
    }

    /// Waits for the disk, syncs new bytes, then reports.
    func conclude(_ exchange: Exchange, _ result: ExchangeResult) {
        exchange.stage = .concluding(result)
        switch exchange.fileWork {
        case .opening: return exchange.meter.isAbandoned.store(true, ordering: .relaxed)
        // Content that restarts must not leave the old bytes behind, even if no new byte arrived.
        case .wanted(let prefix) where exchange.resumeOffset > 0: return openFile(exchange, prefix: prefix)
        case .none, .wanted, .syncing: break
        }
        guard let file = exchange.sink.file, !exchange.sink.isSettled || exchange.fileWork == .syncing else {
            return deliver(exchange, result)
        }
        exchange.sink.flush()
        file.close()
    }

    func closed(_ exchange: Exchange, _ result: Result<PartialFile.Mark, SystemError>) {
        if case .failure(let error) = result {
            exchange.sink.loseBytes()
            fail(exchange, .disk(errno: error.errno))
        }
        if case .concluding(let result) = exchange.stage { deliver(exchange, result) }
    }

    private func deliver(_ exchange: Exchange, _ result: ExchangeResult) {
        if result.outcome == .failed(.egressDenied), let denied = exchange.denied {
            surroundings.log.warning(
                "the egress policy refused an address", ("host", exchange.url.host), ("address", denied.address),
                ("port", denied.port), ("pool", exchange.request.pool))
        }
        if result.outcome == .failed(.bodyDamaged) {
            surroundings.log.error(
                "a body was not sent: its file differs from the stored body", ("host", exchange.url.host),
                ("pool", exchange.request.pool))
        }
        exchanges[exchange.id] = nil
        surroundings.directory.leave(exchange.id)
        surroundings.report(.ended(exchange.id, exchange.completed(result)))
    }

    /// Reports, at the very end, an exchange that the disk has delayed for too long.
    func abandon(_ exchange: Exchange) {
        var result = withdraw(exchange, .stopped)
        result.outcome = .stopped
        deliver(exchange, result)
    }
}

extension Exchange {
    /// Stores the result of a probe.
    func learn(serverPublicKey: String) {
        guard case .probing(let handle, var result) = stage else { return }
        result.serverPublicKey = serverPublicKey
        stage = .probing(handle, result)
    }

    /// The exchange of a handle in a pool; `nil` for libcurl's internal handles.
    static func of(_ easy: UnsafeMutableRawPointer) -> Exchange? {
        var context: UnsafeMutablePointer<CChar>?
        guard ccurl_easy_get_string(easy, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { return nil }
        // The exchange is the handle's private pointer and lives as long as the handle is in the pool.
        return Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
    }
}
