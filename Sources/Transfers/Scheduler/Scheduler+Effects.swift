import Base
import Buckets
import Core
import Files
import Store
import TransferEngine

/// Events for the state machines of transfers, and their effects.
extension Scheduler {
    func feed(_ event: Transfer.Event, of exchange: ExchangeID) async {
        guard let task = exchanges.running[exchange]?.task else { return }
        await feed(event, to: task)
    }

    /// Passes an event to a transfer, and runs its effects.
    func feed(_ event: Transfer.Event, to id: TaskID) async {
        guard var transfer = transfers[id] else { return }
        let canAsk = transfer.mayAsk(after: event) ? await canAsk(transfer) : false
        let world = Transfer.Surroundings(
            now: clock.now, jitter: Double.random(in: 0..<1), exchange: exchanges.take(), canAsk: canAsk,
            largestContent: engine.room.largest, uploadVersions: uploads.versions)
        let effects = transfer.handle(event, in: world)
        transfers[id] = transfer
        for effect in effects { await carryOut(effect, id) }
    }

    private func carryOut(_ effect: Transfer.Effect, _ id: TaskID) async {
        guard let transfer = transfers[id] else { return }
        switch effect {
        case .start(let exchange): start(exchange, transfer)
        case .resumeSegments: tellBegin(transfer, ExchangeID(rawValue: 0), offset: transfer.progress.keptOffset)
        case .stop(let exchange): engine.stop(exchange)
        case .setMaximumUnrecorded(let exchange, let count): engine.setMaximumUnrecorded(exchange, count)
        case .shorten(let exchange, let end): engine.shorten(exchange, to: end)
        case .record(let exchange, let offset, false): engine.recorded(exchange, upTo: offset)
        case .record(let exchange, let offset, true): batch.unrecorded[exchange] = offset
        case .advance(nil): batch.advancing.insert(id)
        case .advance(let resumption?):
            batch.settlements.append(Settlement(task: id, .advanced(transfer.progress), resumption: resumption))
        case .adopt, .find, .removePartialFile, .keep: await prepareFile(effect, transfer)
        case .authorize: await authorize(transfer)
        case .fetchBody: await fetchBody(of: transfer)
        case .widen(let proceeds):
            await widen(id)
            if proceeds { await feed(.widened, to: id) }
        case .widenLater: turn.widening.insert(id)
        case .replace(let exchange, let source):
            guard await connect(id, to: source, inPlaceOf: exchange) != .begun else { return }
            await widen(id)
            await feed(.widened, to: id)
        case .show: show(transfer)
        case .read(let end, let isLast): read(transfer, to: end, isLast: isLast)
        case .readWhole(let length, let checksPieces):
            handles[id]?.reader = transfer.contentReader(folder, total: length, checksPieces: checksPieces)
            read(transfer, to: length, isLast: true)
        case .write(let part): writer(of: transfer)?.write(part)
        case .endWriting(let last):
            guard let writer = writer(of: transfer) else {
                return await feed(.failed(.bucket(.isGone(transfer))), to: id)
            }
            writer.finish(last: last)
        case .finalize: live.finalizing(id)
        case .place(let finish): await place(finish, transfer)
        case .completeObject: await completeObject(transfer)
        case .hold(let time): agenda.withLock { $0.hold(until: time) }
        case .pause(let origin, let wait):
            let now = clock.now
            agenda.withLock { $0.pause(origin, for: wait, app: transfer.task.app, at: now) }
        case .tell(let payload): outlet.live(payload, transfer.task)
        case .note(let note): take(note, transfer)
        case .settle(let settlement): settle(settlement)
        case .ask(let question, let progress, var settlement):
            // Another node may have stored a credential that makes the question unnecessary.
            cache.change(transfer.task.app) { $0.hasCredentials = nil }
            settlement.verdict = .asked(
                question, questionId: Identifier.make(prefix: "qstn_"), deadline: clock.now + settings.questionDeadline,
                progress)
            settle(settlement)
        }
    }

    private func take(_ note: Transfer.Note, _ transfer: Transfer) {
        let log = log.of(transfer.name)
        switch note {
        case .started:
            self.log.started(
                transfer.name, attempt: transfer.progress.attempts.attempts + 1,
                offset: transfer.attempt.resuming?.offset ?? transfer.uploadOffset)
        case .willRetry(let attempt, let time):
            meters.retries.add()
            self.log.willRetry(transfer.name, attempt, at: time)
        case .contentsFault(let fault): settings.contents?.access.note(fault)
        case .egressDenied(let host): log.warning("transfer refused by the egress policy", ("host", host))
        case .waitsForDisk(let needed): log.info("task waits for room on the disk", ("needed", needed))
        case .wrongPiece(let offset): log.warning("a piece is not what it should be", ("offset", offset))
        case .bucketFault(let fault):
            log.warning(
                "the content could not be written into its bucket", ("code", fault.code), ("message", fault.message))
        case .bodyFault(let fault): log.warning("the body could not be fetched", ("error", "\(fault)"))
        case .speaks(let version, let origin): uploads.versions.note(version, of: origin)
        case .isSilent(let version, let origin): uploads.versions.noteSilence(to: version, of: origin)
        }
    }

    // MARK: Exchanges

    private func start(_ exchange: ExchangeID, _ transfer: Transfer) {
        let (id, session) = (transfer.id, transfer.task.session)
        let url = transfer.segmented?.connections[exchange]?.url
        let running = Exchanges.Running(
            task: id, url: url ?? transfer.requestURL, cookies: cookies(of: transfer, for: url ?? transfer.requestURL))
        exchanges.running[exchange] = running
        if url == nil {
            handles[id]?.writer = nil
            handles[id]?.reader = nil
            if transfer.request.source > 0 {
                let lane = lane(of: transfer, at: transfer.request.url.origin)
                agenda.withLock { $0.count(connection: exchange, lane) }
            }
            tellBegin(transfer, exchange, offset: transfer.attempt.resuming?.offset ?? 0)
        }
        let isLimited = isLimited(session)
        engine.start(
            transfer.exchangeRequest(
                exchange,
                Transfer.Resources(
                    folder: folder, settings: settings, sync: handles[id]?.sync ?? SharedSync(),
                    cookies: running.cookies, bandwidthLimit: isLimited ? bandwidthShare(of: transfer) : nil)))
        if isLimited { shareBandwidth(of: session) }
    }

    private func tellBegin(_ transfer: Transfer, _ exchange: ExchangeID, offset: Int64) {
        live.began(
            transfer.id, session: transfer.task.session, exchange: exchange, offset: offset,
            sentBefore: transfer.uploadOffset, stallInterval: transfer.configuration.stallInterval.map { .seconds($0) })
        outlet.transferBegan(in: transfer.task.session)
    }

    func end(_ exchange: ExchangeID, _ result: ExchangeResult) async {
        guard let running = exchanges.running.removeValue(forKey: exchange), let transfer = transfers[running.task]
        else { return agenda.withLock { $0.ended(deletion: exchange) } }
        meters.received.add(result.bytesReceived)
        meters.sent.add(result.bytesSent)
        batch.unrecorded[exchange] = nil
        noteCookies(of: transfer, running, result)
        await feed(.ended(exchange, result), to: running.task)
        agenda.withLock { $0.ended(connection: exchange) }
        if isLimited(transfer.task.session) { shareBandwidth(of: transfer.task.session) }
    }

    private func authorize(_ transfer: Transfer) async {
        do {
            await feed(.authorized(try await access(for: transfer)), to: transfer.id)
        } catch {
            log.of(transfer.name).error("credentials could not be read", ("error", "\(error)"))
            let fault = (error as? BucketFault).map(LocalFault.source) ?? .credentials(error)
            await feed(.failed(fault), to: transfer.id)
        }
    }

    func stop(_ id: TaskID, _ reason: Transfer.Stop) async {
        guard transfers[id] != nil else {
            return outlet.janitor.tell(.removeIfOrphan(folder.partial(id.rawValue)))
        }
        live.ended(id)
        if let (client, exchange) = handles[id]?.fetching { client.stop(exchange) }
        if reason == .decided { handles[id]?.decided.ring() }
        await feed(.stop(reason), to: id)
    }

    // MARK: The partial file

    private func prepareFile(_ effect: Transfer.Effect, _ transfer: Transfer) async {
        let file = folder.partial(transfer.id.rawValue)
        do {
            switch effect {
            // The file is missing if an attempt before a crash has adopted it already.
            case .adopt(let adopted): try? await folder.move(adopted, to: file)
            case .removePartialFile: try await folder.remove(file)
            case .keep(let ranges): try await folder.keep(ranges, of: file)
            default: await feed(.found(size: try await folder.size(file)), to: transfer.id)
            }
        } catch {
            log.of(transfer.name).error("task could not be started", ("error", "\(error)"))
            await feed(.failed(.start(error)), to: transfer.id)
        }
    }

    /// Stores the progress of transfers, once for all reports of each.
    func storeAdvances() {
        for id in batch.advancing {
            guard let transfer = transfers[id] else { continue }
            batch.settlements.append(Settlement(task: id, .advanced(transfer.progress)))
        }
        batch.advancing = []
    }

    // MARK: Reading

    private func read(_ transfer: Transfer, to end: Int64, isLast: Bool) {
        let id = transfer.id
        let total = transfer.segmented?.plan.total ?? end
        let reader = handles[id]?.reader ?? transfer.contentReader(folder, total: total)
        handles[id]?.reader = reader
        let inbox = inbox
        turn.errands.append {
            let result: Result<Range<Int64>?, SystemError>
            do throws(SystemError) {
                let wrong = try await reader.read(to: end)
                if isLast, wrong == nil { try await reader.truncate() }
                result = .success(wrong)
            } catch { result = .failure(error) }
            let isWhole = isLast && reader.position == total
            let reading = Transfer.Reading(
                result: result, position: reader.position, digests: isWhole ? reader.finish() : [:])
            inbox.tell(.event(id, Scheduler.Incident(.read(reading))))
        }
    }
}

extension Transfer {
    /// Whether a question to the app may follow an event.
    func mayAsk(after event: Event) -> Bool {
        var results: [ExchangeResult?] = []
        switch event {
        case .ended(_, let result): results = [result, segmented?.failure?.result]
        case .wrote, .read, .widened: break
        default: return false
        }
        switch stage {
        case .verifying(let result): results.append(result)
        case .writing(let writing): results.append(writing.result)
        case .segmented(let segmented): results.append(segmented.failure?.result)
        default: break
        }
        return results.contains { $0?.mayAsk ?? false }
    }
}
