import Base
import CCurl
import Glibc
import Synchronization

/// The partial files of a loop's exchanges, opened and synced on the disk threads.
extension TransferLoop {
    /// The disk threads, for work of an exchange's app.
    func disk(of exchange: Exchange) -> DiskQueue { surroundings.disk.of(exchange.request.pool) }

    func openFile(_ exchange: Exchange, prefix: Int64) {
        guard case .content(let path, let offset, let digest, _, let algorithms) = exchange.request.sink else { return }
        let expected = prefix == offset ? digest : nil
        exchange.isOpening = true
        let (id, mailbox, meter) = (exchange.id, mailbox, exchange.meter)
        let opening = PartialFileOpening(
            path, prefix: prefix, sha256: expected, algorithms,
            while: { !meter.isAbandoned.load(ordering: .relaxed) })
        let isTaken = disk(of: exchange).postSteps(opening.length) {
            guard let result = opening.step() else { return true }
            mailbox.post(.fileOpened(id, result))
            return false
        }
        if !isTaken { mailbox.post(.fileOpened(id, .failure(.disk(DiskError("open", errno: ESHUTDOWN))))) }
    }

    func fileOpened(_ exchange: Exchange, _ result: Result<PartialFile, PartialFile.Failure>) {
        exchange.isOpening = false
        exchange.preparations.remove(.prefix)
        switch result {
        case .success(let file):
            do throws(DiskError) { try exchange.sink.adopt(file) } catch { exchange.fault = .disk(errno: error.errno) }
        case .failure(.prefixMissing):
            exchange.sink.restart()
            exchange.fault = .prefixMissing
        case .failure(.disk(let error)): exchange.fault = .disk(errno: error.errno)
        case .failure(.cancelled): break
        }
        switch exchange.stage {
        case .concluding(let ending): return conclude(exchange, ending)
        case .probing: return
        case .preparing, .running: break
        }
        if let fault = exchange.fault { return fail(exchange, fault) }
        launchIfReady(exchange)
        exchange.lastSync = state.now
        exchange.fileIsReady()
        goOn(exchange)
    }

    func goOn(_ exchange: Exchange) {
        // What libcurl held back goes through the callbacks inside this call; what they refuse ends the exchange.
        let code = exchange.resumeIfDue()
        if code != CURLE_OK { return finish(exchange, exchange.ending(code)) }
        noteDeadline(of: exchange)
    }

    func sync(_ exchange: Exchange) {
        guard let file = exchange.sink.file else { return }
        exchange.isSyncing = true
        exchange.lastSync = state.now
        let offset = exchange.sink.length
        exchange.sink.syncRequested = offset
        let (id, mailbox, sha256) = (exchange.id, mailbox, exchange.sink.sha256)
        let isTaken = disk(of: exchange).post {
            do throws(DiskError) {
                try file.sync()
                mailbox.post(.synced(id, offset: offset, sha256: sha256, nil))
            } catch { mailbox.post(.synced(id, offset: offset, sha256: nil, error)) }
        }
        if !isTaken { exchange.isSyncing = false }
    }

    func synced(_ exchange: Exchange, _ offset: Int64, _ sha256: [UInt8]?, _ error: DiskError?) {
        exchange.isSyncing = false
        if let error { return fail(exchange, .disk(errno: error.errno)) }
        if case .concluding = exchange.stage { return }
        surroundings.report(.durable(exchange.id, offset: offset, sha256: sha256))
        if case .running = exchange.stage, exchange.wantsSync { sync(exchange) }
        noteDeadline(of: exchange)
    }

    /// Opens the file that a callback found to be needed.
    func serve(_ exchange: Exchange) {
        guard let prefix = exchange.wantedPrefix else { return }
        exchange.wantedPrefix = nil
        openFile(exchange, prefix: prefix)
    }
}
