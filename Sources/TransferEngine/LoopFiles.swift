import Base
import CCurl
import Files
import Formats
import Glibc
import Synchronization

/// The partial files of a loop's exchanges, opened, written and synced on the disk threads.
extension TransferLoop {
    /// The disk queue for work of the exchange's app.
    func disk(of exchange: Exchange) -> DiskQueue { surroundings.disk.of(exchange.request.pool) }

    func openFile(_ exchange: Exchange, prefix: Int64) {
        guard let (path, start, algorithms, sync) = exchange.request.sink.file(behind: prefix) else { return }
        exchange.fileWork = .opening
        let (id, commands, meter) = (exchange.id, commands, exchange.meter)
        PartialFileOpening(
            path, start, algorithms, disk: disk(of: exchange), sync: sync,
            while: { !meter.isAbandoned.load(ordering: .relaxed) },
            tell: { commands.post(.file($0), to: id) }
        ).begin { commands.post(.fileOpened($0), to: id) }
    }

    func fileOpened(_ exchange: Exchange, _ outcome: PartialFileOpening.Outcome) {
        exchange.fileWork = .none
        let fault = adopt(outcome, for: exchange)
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

    /// - Returns: The fault, if any.
    private func adopt(_ outcome: PartialFileOpening.Outcome, for exchange: Exchange) -> TransferFault? {
        switch outcome {
        case .success(let file):
            exchange.sink.adopt(file)
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
            // libcurl passes paused bytes to the callbacks inside this call. A refusal ends the exchange.
            let code = running.resumeIfDue()
            if code != CURLE_OK { return finish(running, code) }
        }
        noteDeadline(of: exchange)
    }

    /// Starts the disk work that is due for an exchange.
    func attendFile(of running: Exchange.Running) {
        let exchange = running.exchange
        if case .wanted(let prefix) = exchange.fileWork { openFile(exchange, prefix: prefix) }
        if running.wantsFlush { exchange.sink.flush() }
        guard running.wantsSync, let file = exchange.sink.file else { return }
        exchange.fileWork = .syncing
        running.lastSync = state.now
        file.makeDurable()
    }

    func take(_ news: PartialFile.News, of exchange: Exchange) {
        switch news {
        case .reached(let offset): exchange.sink.reach(offset)
        case .failed(let error): return fail(exchange, .disk(errno: error.errno))
        case .synced(.success(let mark)):
            exchange.fileWork = .none
            exchange.sink.note(durable: mark)
            if case .concluding = exchange.stage { return }
            if case .running(let running) = exchange.stage { running.lastSync = state.now }
            surroundings.report(.durable(exchange.id, offset: mark.offset, sha256: mark.sha256))
        case .synced(.failure(let error)):
            exchange.fileWork = .none
            exchange.sink.loseBytes()
            return fail(exchange, .disk(errno: error.errno))
        case .closed(let result): return closed(exchange, result)
        }
        guard case .running(let running) = exchange.stage else { return }
        attendFile(of: running)
        noteDeadline(of: exchange)
    }

    // MARK: Buffers

    /// Resumes exchanges that wait for a buffer, apps in turns. If too few buffers are being written, the fullest
    /// partly filled ones are written too, so that a silent origin blocks no other exchange.
    func shareBuffers() {
        while buffers.hasFree, let (exchange, _) = state.awaitingBuffer.next() {
            guard case .running(let running) = exchange.stage, running.bufferIsFree() else { continue }
            goOn(exchange)
        }
        guard !state.awaitingBuffer.isEmpty else { return }
        let holders = exchanges.values.filter { $0.sink.gathered > 0 }
        let underWay = buffers.taken - holders.count
        let missing = state.awaitingBuffer.count - underWay
        guard missing > 0 else { return }
        for holder in holders.sorted(by: { $0.sink.gathered > $1.sink.gathered }).prefix(missing) {
            holder.sink.flush()
        }
    }
}

extension SinkPlan {
    /// The parameters to open its file, with `prefix` bytes kept.
    fileprivate func file(
        behind prefix: Int64
    ) -> (path: String, start: PartialFileOpening.Start, digests: [DigestAlgorithm], sync: SharedSync)? {
        switch self {
        case .memory, .parts: nil
        case .content(let path, let offset, let digest, _, let digests):
            (path, .behind(prefix, sha256: prefix == offset ? digest : nil), digests, SharedSync())
        case .stretch(let path, let offset, _, let sync): (path, .among(offset), [], sync)
        }
    }
}
