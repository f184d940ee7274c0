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
        guard let flight = flights[id] else { return }
        let canAsk = flight.transfer.mayAsk(after: event) ? await canAsk(flight.transfer) : false
        let world = Transfer.Surroundings(
            now: clock.now, jitter: event.mayEndAttempt ? Double.random(in: 0..<1) : 0, exchange: exchanges.take(),
            canAsk: canAsk, largestContent: engine.room.largest, uploadVersions: uploads.versions,
            pauses: event.mayEndAttempt ? agenda.withLock { $0.pauses } : OriginPauses())
        for effect in flight.transfer.handle(event, in: world) { await carryOut(effect, id) }
    }

    private func carryOut(_ effect: Transfer.Effect, _ id: TaskID) async {
        guard let flight = flights[id] else { return }
        switch effect {
        case .start(let exchange): start(exchange, flight)
        case .resumeSegments:
            tellBegin(
                flight.transfer, flight.arrival, ExchangeID(rawValue: 0), offset: flight.transfer.progress.keptOffset)
        case .stop(let exchange): engine.stop(exchange)
        case .setMaximumUnrecorded(let exchange, let count): engine.setMaximumUnrecorded(exchange, count)
        case .shorten(let exchange, let end): engine.shorten(exchange, to: end)
        case .record(let exchange, let offset, false): engine.recorded(exchange, upTo: offset)
        case .record(let exchange, let offset, true): batch.unrecorded[exchange] = offset
        case .advance(nil): batch.advancing.insert(id)
        case .advance(let resumption?):
            batch.settlements.append(
                Settlement(task: id, .advanced(flight.transfer.progress), resumption: resumption))
        case .adopt, .withdrawPartialFile, .find, .removePartialFile, .keep: await prepareFile(effect, flight.transfer)
        case .authorize: await authorize(flight)
        case .consult: consult(flight)
        case .forbidReuse: forbidReuse(of: flight.transfer)
        case .fetchBody: await fetchBody(of: flight.transfer)
        case .widen(let proceeds):
            await widen(id)
            if proceeds { await feed(.widened, to: id) }
        case .widenLater: turn.widening.insert(id)
        case .replace(let exchange, let source): await replace(exchange, of: id, by: source)
        case .show: show(flight.transfer)
        case .arrived(nil, nil) where flight.arrival.isBlank: break
        case .arrived(let content, let response): outlet.arrivals.note(content, response, of: id)
        case .read(let end, let isLast): read(flight, to: end, isLast: isLast)
        case .readWhole(let length, let checksPieces):
            flight.reader = flight.transfer.contentReader(folder, total: length, checksPieces: checksPieces)
            read(flight, to: length, isLast: true)
        case .write(let part): writer(of: flight.transfer)?.write(part)
        case .expose(let response):
            if !flight.isExposed { flight.writer?.expose(response) }
            flight.isExposed = true
        case .endWriting(let last):
            guard let writer = writer(of: flight.transfer) else {
                return await feed(.failed(.bucket(.isGone(flight.transfer))), to: id)
            }
            writer.finish(last: last)
        case .finalize: live.finalizing(id)
        case .place(let finish): await place(finish, flight)
        case .completeObject: await completeObject(flight.transfer)
        case .hold(let time): agenda.withLock { $0.hold(until: time) }
        case .pause(let origin, let wait):
            let (now, app) = (clock.now, flight.transfer.task.app.rawValue)
            let pause = OriginPause(origin, app: app, retryAfter: wait, at: now)
            if let longer = agenda.withLock({ $0.take(pause, at: now) }) { batch.pauses[longer.place] = longer }
        case .tell(let payload): outlet.live(payload, flight.transfer.task)
        case .note(let note): take(note, flight)
        case .settle(let settlement): settle(settlement)
        case .ask(let question, let progress, let settlement): ask(question, progress, settlement, flight.transfer)
        }
    }

    private func ask(_ question: Question, _ progress: TaskProgress, _ settlement: Settlement, _ transfer: Transfer) {
        // Another node may have stored a credential that makes the question unnecessary.
        cache.change(transfer.task.app) { $0.hasCredentials = nil }
        var settlement = settlement
        settlement.verdict = .asked(
            question, questionId: Identifier.make(prefix: "qstn_"), deadline: clock.now + settings.questionDeadline,
            progress)
        settle(settlement)
    }

    private func take(_ note: Transfer.Note, _ flight: Flight) {
        let name = flight.transfer.name
        var log: Log { self.log.of(name) }
        switch note {
        case .started:
            self.log.started(
                name, attempt: flight.transfer.progress.attempts.attempts + 1,
                offset: flight.transfer.attempt.resuming?.offset ?? flight.transfer.uploadOffset)
        case .willRetry(let attempt, let time):
            meters.retries.add()
            self.log.willRetry(name, attempt, at: time)
        case .contentsFault(let fault): settings.contents?.access.note(fault)
        case .egressDenied(let host): log.warning("the egress policy refused a transfer", ("host", host))
        case .waitsForDisk(let needed): log.info("a task waits for disk space", ("needed", needed))
        case .wrongPiece(let offset): log.warning("a piece has another digest than its description", ("offset", offset))
        case .bucketFault(let fault):
            log.warning(
                "a content could not be written to its bucket", ("code", fault.code), ("message", fault.message))
        case .bodyFault(let fault): log.warning("a body could not be fetched", ("error", "\(fault)"))
        case .speaks(let version, let origin): uploads.versions.note(version, of: origin)
        case .isSilent(let version, let origin): uploads.versions.noteSilence(to: version, of: origin)
        }
    }

    // MARK: Exchanges

    private func start(_ exchange: ExchangeID, _ flight: Flight) {
        let connection = flight.transfer.segmented?.connections[exchange]?.url
        let url = connection ?? flight.transfer.requestURL
        let cookies = cookies(of: flight.transfer, for: url)
        // A further connection requests a part of the same version.
        let isFurther = connection != nil && url.text == flight.transfer.taskURL.text
        if !isFurther, flight.transfer.noteIdentity(cookies ?? [], at: url) { divideFlight(of: flight.transfer) }
        let transfer = flight.transfer
        let session = transfer.task.session
        let running = Exchanges.Running(task: transfer.id, url: url, cookies: cookies)
        exchanges.running[exchange] = running
        if connection == nil {
            (flight.writer, flight.reader, flight.isExposed) = (nil, nil, false)
            if transfer.request.source > 0 {
                let lane = lane(of: transfer, at: url.origin)
                agenda.withLock { $0.count(connection: exchange, lane) }
            }
            tellBegin(transfer, flight.arrival, exchange, offset: transfer.attempt.resuming?.offset ?? 0)
        }
        let isLimited = isLimited(session)
        engine.start(
            transfer.exchangeRequest(
                exchange,
                Transfer.Resources(
                    folder: folder, settings: settings, sync: flight.sync, arrival: flight.arrival,
                    cookies: running.cookies, bandwidthLimit: isLimited ? bandwidthShare(of: transfer) : nil)))
        if isLimited { shareBandwidth(of: session) }
    }

    private func tellBegin(_ transfer: Transfer, _ arrival: Arrival, _ exchange: ExchangeID, offset: Int64) {
        let session = transfer.task.session
        live.began(
            transfer.id, session: session, exchange: exchange, arrival: arrival, offset: offset,
            sentBefore: transfer.uploadOffset,
            stallInterval: transfer.configuration.stallInterval.map { .seconds($0) })
        outlet.transferBegan(in: session)
    }

    func end(_ exchange: ExchangeID, _ result: ExchangeResult) async {
        guard let running = exchanges.running.removeValue(forKey: exchange), let flight = flights[running.task]
        else { return agenda.withLock { $0.ended(deletion: exchange) } }
        meters.received.add(result.bytesReceived)
        meters.sent.add(result.bytesSent)
        batch.unrecorded[exchange] = nil
        let session = flight.transfer.task.session
        if running.cookies != nil { noteCookies(of: flight.transfer, running, result) }
        await feed(.ended(exchange, result), to: running.task)
        agenda.withLock { $0.ended(connection: exchange) }
        if isLimited(session) { shareBandwidth(of: session) }
    }

    private func authorize(_ flight: Flight) async {
        let id = flight.transfer.id
        do {
            await feed(.authorized(try await access(for: flight.transfer)), to: id)
        } catch {
            log.of(flight.transfer.name).error("credentials could not be read", ("error", "\(error)"))
            let fault = (error as? BucketFault).map(LocalFault.source) ?? .credentials(error)
            await feed(.failed(fault), to: id)
        }
    }

    func stop(_ id: TaskID, _ reason: Transfer.Stop) async {
        guard let flight = flights[id] else {
            return outlet.janitor.tell(.removeIfOrphan(folder.partial(id.rawValue)))
        }
        live.ended(id)
        if let (client, exchange) = flight.fetching { client.stop(exchange) }
        if reason == .decided { flight.decided.ring() }
        await feed(.stop(reason), to: id)
    }

    // MARK: The partial file

    private func prepareFile(_ effect: Transfer.Effect, _ transfer: Transfer) async {
        let file = folder.partial(transfer.id.rawValue)
        do {
            switch effect {
            case .adopt(let adopted):
                let former = folder.task(ofPartial: adopted).map { TaskID($0) }
                // A new transfer of the task that passed the file on writes into it: this download restarts from zero.
                if let former, flights[former] != nil { return try await folder.remove(file, durably: true) }
                outlet.arrivals.pass(from: former, to: transfer.id, version: transfer.progress.version)
                // The file is missing if an attempt before a crash has adopted it already. One that cannot be moved is
                // removed, and the download restarts: no row names the file any more.
                do { try await folder.move(adopted, to: file) } catch {
                    try await folder.remove(adopted, durably: true)
                }
            case .withdrawPartialFile: try await store.tasks.withdraw(file, of: transfer.id, at: clock.now)
            case .removePartialFile: try await folder.remove(file, durably: true)
            case .keep(let ranges): try await folder.keep(ranges, of: file)
            case .find: await feed(.found(size: try await folder.size(file)), to: transfer.id)
            default: break
            }
        } catch {
            log.of(transfer.name).error("a task could not be started", ("error", "\(error)"))
            await feed(.failed(.start(error)), to: transfer.id)
        }
    }

    /// Stores the progress of transfers, once for all reports of each.
    func storeAdvances() {
        for id in batch.advancing {
            guard let flight = flights[id] else { continue }
            batch.settlements.append(Settlement(task: id, .advanced(flight.transfer.progress)))
        }
        batch.advancing = []
    }

    // MARK: Reading

    private func read(_ flight: Flight, to end: Int64, isLast: Bool) {
        let id = flight.transfer.id
        let total = flight.transfer.segmented?.plan.total ?? end
        let reader = flight.reader ?? flight.transfer.contentReader(folder, total: total)
        flight.reader = reader
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
            inbox.tell(.event(id, Incident(.read(reading))))
        }
    }
}

extension Transfer {
    /// Whether the effects of an event can include a question to the app.
    func mayAsk(after event: Event) -> Bool {
        if case .head(_, let head, _) = event { return head.status == 401 || head.status == 407 }
        guard event.mayEndAttempt else { return false }
        var results = [segmented?.failure?.result]
        if case .ended(_, let result) = event { results.append(result) }
        switch stage {
        case .verifying(let result): results.append(result)
        case .writing(let writing): results.append(writing.result)
        default: break
        }
        return results.contains { $0?.mayAsk ?? false }
    }
}

extension Transfer.Event {
    /// Whether the attempt can end with the event.
    fileprivate var mayEndAttempt: Bool {
        switch self {
        case .ended, .failed, .wrote, .read, .widened: true
        default: false
        }
    }
}
