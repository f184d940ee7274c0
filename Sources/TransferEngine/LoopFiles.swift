import Base
import CCurl
import Files
import Glibc
import Synchronization

/// The partial files of a loop's exchanges, opened and synced on the disk threads.
extension TransferLoop {
    /// The disk threads, for work of an exchange's app.
    func disk(of exchange: Exchange) -> DiskQueue { surroundings.disk.of(exchange.request.pool) }

    func openFile(_ exchange: Exchange, prefix: Int64) {
        guard case .content(let path, let offset, let digest, _, let algorithms) = exchange.request.sink else { return }
        let expected = prefix == offset ? digest : nil
        exchange.fileWork = .opening
        let (id, mailbox, meter) = (exchange.id, mailbox, exchange.meter)
        let opening = PartialFileOpening(
            path, prefix: prefix, sha256: expected, algorithms,
            while: { !meter.isAbandoned.load(ordering: .relaxed) })
        let isTaken = disk(of: exchange).postSteps(opening.length) {
            guard let result = opening.step() else { return true }
            mailbox.post(.fileOpened(result), to: id)
            return false
        }
        if !isTaken { mailbox.post(.fileOpened(.failure(.disk(SystemError("open", errno: ESHUTDOWN)))), to: id) }
    }

    func fileOpened(_ exchange: Exchange, _ result: Result<PartialFile, PartialFile.Failure>) {
        exchange.fileWork = .none
        let fault = adopt(result, for: exchange)
        switch exchange.stage {
        case .probing: break
        case .concluding:
            if let fault { fail(exchange, fault) }
            if case .concluding(let result) = exchange.stage { conclude(exchange, result) }
        case .preparing(let preparation):
            preparation.needs.remove(.prefix)
            if let fault { fail(exchange, fault) } else { launchIfReady(exchange, preparation) }
        case .running(let running):
            if let fault { return fail(exchange, fault) }
            running.fileIsReady()
            goOn(exchange)
        }
    }

    /// - Returns: What went wrong.
    private func adopt(
        _ result: Result<PartialFile, PartialFile.Failure>, for exchange: Exchange
    ) -> TransferFault? {
        switch result {
        case .success(let file):
            do throws(SystemError) { try exchange.sink.adopt(file) } catch { return .disk(errno: error.errno) }
            return nil
        case .failure(.prefixMissing):
            exchange.sink.restart()
            return .prefixMissing
        case .failure(.disk(let error)): return .disk(errno: error.errno)
        case .failure(.cancelled): return nil
        }
    }

    func goOn(_ exchange: Exchange) {
        if case .running(let running) = exchange.stage {
            // What libcurl held back goes through the callbacks inside this call; what they refuse ends the exchange.
            let code = running.resumeIfDue()
            if code != CURLE_OK { return finish(running, code) }
        }
        noteDeadline(of: exchange)
    }

    func sync(_ running: Exchange.Running) {
        let exchange = running.exchange
        guard let file = exchange.sink.file else { return }
        exchange.fileWork = .syncing
        running.lastSync = state.now
        let offset = exchange.sink.length
        exchange.sink.syncRequested = offset
        let (id, mailbox, sha256) = (exchange.id, mailbox, exchange.sink.sha256)
        disk(of: exchange).run { () throws(SystemError) in
            try file.sync()
        } then: {
            mailbox.post(.synced($0, offset: offset, sha256: sha256), to: id)
        }
    }

    func synced(_ exchange: Exchange, _ result: Result<Void, SystemError>, _ offset: Int64, _ sha256: [UInt8]?) {
        exchange.fileWork = .none
        if case .failure(let error) = result { return fail(exchange, .disk(errno: error.errno)) }
        if case .concluding = exchange.stage { return }
        surroundings.report(.durable(exchange.id, offset: offset, sha256: sha256))
        if case .running(let running) = exchange.stage, running.wantsSync { sync(running) }
        noteDeadline(of: exchange)
    }
}
