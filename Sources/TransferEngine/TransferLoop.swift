import Base
import CCurl
import Core
import Glibc
import Synchronization

/// What the loops of one engine share.
struct LoopSurroundings: Sendable {
    let disk: DiskQueue
    let resolver: Resolver
    let directory: ExchangeDirectory
    let log: Log
    let clock: Clock
    let report: @Sendable (ExchangeReport) -> Void
}

/// The whole life of one `transfer` thread.
///
/// Sequential code, no locks: nobody else can see these properties.
final class TransferLoop {
    private let surroundings: LoopSurroundings
    private let mailbox: Mailbox
    private let epoll: Epoll
    private let watch: SocketWatch
    private let state = LoopState()
    private var exchanges: [ExchangeID: Exchange] = [:]
    private var pools: [Int64: ConnectionPool] = [:]
    /// Pools whose connections shall not be used again, until their last exchange ended.
    private var retired: [ConnectionPool] = []
    private var spare: [Easy] = []
    /// The earliest alarm of a pool.
    private var nextAlarm = Int64.max
    /// When the exchanges' own limits are looked at.
    private var nextSweep = Int64.max
    private var endAt: Int64?

    private static let maximumSpare = 256
    /// Limits are kept to this precision, so that thousands of them do not cost a sweep each.
    private static let sweepPrecision: Int64 = 25
    private static let idlePoolLifetime: Int64 = 60_000
    private static let maximumAnswers = 64

    init(_ surroundings: LoopSurroundings, _ mailbox: Mailbox) throws(EngineError) {
        self.surroundings = surroundings
        self.mailbox = mailbox
        epoll = try Epoll()
        watch = SocketWatch(epoll)
        epoll.watch(mailbox.wakeup, .read)
    }

    func run() {
        state.now = surroundings.clock.monotonic()
        while !isFinished { turn() }
        for exchange in exchanges.values { abandon(exchange) }
        exchanges = [:]
        for pool in pools.values { pool.close() }
        for pool in retired { pool.close() }
        pools = [:]
        retired = []
    }

    private var isFinished: Bool {
        guard let endAt else { return false }
        return exchanges.isEmpty || state.now >= endAt
    }

    /// Waits for something to happen, lets libcurl deal with it, reports what ended.
    private func turn() {
        var hasMail = false
        epoll.wait(milliseconds: patience()) { descriptor, ready in
            // The time as of after the wait, before the first callback looks at it.
            state.now = surroundings.clock.monotonic()
            if descriptor == mailbox.wakeup {
                hasMail = true
            } else if let pool = watch.owner(of: descriptor) {
                pool.act(on: descriptor, ready)
                collect(pool)
            }
        }
        state.now = surroundings.clock.monotonic()
        if hasMail {
            for command in mailbox.take() { carryOut(command) }
        }
        actOnAlarms()
        attend()
        if nextSweep <= state.now { sweep() }
    }

    private func patience() -> Int32 {
        let due = min(nextAlarm, nextSweep, endAt ?? .max)
        guard due < .max else { return -1 }
        return Int32(clamping: max(0, due - surroundings.clock.monotonic()))
    }

    private func actOnAlarms() {
        findNextAlarm()
        guard nextAlarm <= state.now else { return }
        for pool in Array(pools.values) + retired {
            pool.actOnAlarm()
            collect(pool)
        }
        findNextAlarm()
    }

    private func findNextAlarm() {
        guard state.alarmsChanged else { return }
        state.alarmsChanged = false
        nextAlarm = .max
        for pool in pools.values { nextAlarm = min(nextAlarm, pool.alarm ?? .max) }
        for pool in retired { nextAlarm = min(nextAlarm, pool.alarm ?? .max) }
    }

    /// Does what callbacks asked for.
    private func attend() {
        while let exchange = state.needingAttention.popLast() {
            exchange.attentionBegins()
            guard case .running = exchange.stage else { continue }
            if exchange.wantedPrefix != nil { serve(exchange) }
            if exchange.wantsSync { sync(exchange) }
            noteDeadline(of: exchange)
        }
    }

    // MARK: Commands

    private func carryOut(_ command: LoopCommand) {
        switch command {
        case .start(let request, let url, let meter): start(request, url, meter)
        case .stop(let id):
            if let exchange = exchanges[id] { stop(exchange) }
        case .limit(let id, let limit):
            if let exchange = exchanges[id] {
                exchange.setLimit(limit)
                goOn(exchange)
            }
        case .resolved(let id, let name, let resolution):
            if let exchange = exchanges[id] { resolved(exchange, name, resolution) }
        case .bodyOpened(let id, let result):
            if let exchange = exchanges[id] { bodyOpened(exchange, result) }
        case .fileOpened(let id, let result):
            if let exchange = exchanges[id] { fileOpened(exchange, result) }
        case .synced(let id, let offset, let error):
            if let exchange = exchanges[id] { synced(exchange, offset, error) }
        case .closed(let id, let error):
            if let exchange = exchanges[id] { closed(exchange, error) }
        case .closeConnections(let pool): retire(pool)
        case .shutDown(let end):
            endAt = min(endAt ?? .max, end)
            for exchange in Array(exchanges.values) { stop(exchange) }
        }
    }

    private func start(_ request: ExchangeRequest, _ parsed: Result<ParsedURL, BadURL>, _ meter: ExchangeMeter) {
        let wall = surroundings.clock.wall()
        let url: ParsedURL
        switch parsed {
        case .success(let parsed): url = parsed
        case .failure:
            url = ParsedURL(url: request.url, scheme: "", host: "", address: nil, port: 0, path: "", query: nil)
        }
        let exchange = Exchange(request, url, meter, state, report: surroundings.report)
        exchange.metrics.fetchStart = wall
        exchanges[request.id] = exchange
        guard case .success = parsed, Exchange.isSendable(request) else { return fail(exchange, .badRequest) }
        guard endAt == nil else { return conclude(exchange, .stopped) }
        prepare(exchange)
    }

    // MARK: Preparing

    private func prepare(_ exchange: Exchange) {
        let request = exchange.request
        exchange.metrics.domainLookupStart = exchange.url.address == nil ? surroundings.clock.wall() : nil
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
    private func lookUp(_ exchange: Exchange, _ name: Exchange.Name, _ host: String) -> Bool {
        exchange.preparations.insert(name == .proxy ? .proxy : .target)
        let (id, mailbox) = (exchange.id, mailbox)
        if let known = surroundings.resolver.lookUp(host, { mailbox.post(.resolved(id, name, $0)) }) {
            return settle(exchange, name, known)
        }
        noteDeadline(of: exchange)
        return true
    }

    private func resolved(_ exchange: Exchange, _ name: Exchange.Name, _ resolution: Resolution) {
        guard case .preparing = exchange.stage, settle(exchange, name, resolution) else { return }
        launchIfReady(exchange)
    }

    /// Judges all answers of the resolver: one that is forbidden refuses the attempt.
    private func settle(_ exchange: Exchange, _ name: Exchange.Name, _ resolution: Resolution) -> Bool {
        exchange.preparations.remove(name == .proxy ? .proxy : .target)
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

    private func openBody(_ exchange: Exchange, _ path: String) {
        exchange.preparations.insert(.body)
        let (id, mailbox) = (exchange.id, mailbox)
        let isTaken = surroundings.disk.post {
            let result = Result { () throws(DiskError) in try OpenFile.open(path, O_RDONLY) }
            mailbox.post(.bodyOpened(id, result))
        }
        if !isTaken { mailbox.post(.bodyOpened(id, .failure(DiskError("open", errno: ESHUTDOWN)))) }
    }

    private func bodyOpened(_ exchange: Exchange, _ result: Result<OpenFile, DiskError>) {
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

    private func launchIfReady(_ exchange: Exchange) {
        guard exchange.preparations.isEmpty, case .preparing = exchange.stage else { return }
        guard let easy = spare.popLast() ?? Easy() else { return fail(exchange, .other(curlCode: 27)) }
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

    private func pool(_ number: Int64) -> ConnectionPool {
        if let pool = pools[number] { return pool }
        let pool = ConnectionPool(watch, state)
        pools[number] = pool
        nextSweep = min(nextSweep, state.now + Self.idlePoolLifetime)
        return pool
    }

    private func retire(_ number: Int64) {
        guard let pool = pools.removeValue(forKey: number) else { return }
        if pool.active == 0 { pool.close() } else { retired.append(pool) }
        state.alarmsChanged = true
    }

    // MARK: The partial file

    private func openFile(_ exchange: Exchange, prefix: Int64) {
        guard case .content(let path, _, _, let algorithms) = exchange.request.sink else { return }
        exchange.isOpening = true
        let (id, mailbox, meter) = (exchange.id, mailbox, exchange.meter)
        let isTaken = surroundings.disk.post {
            let result = Result { () throws(PartialFile.Failure) in
                try PartialFile.open(
                    path, prefix: prefix, algorithms, while: { !meter.isAbandoned.load(ordering: .relaxed) })
            }
            mailbox.post(.fileOpened(id, result))
        }
        if !isTaken { mailbox.post(.fileOpened(id, .failure(.disk(DiskError("open", errno: ESHUTDOWN))))) }
    }

    private func fileOpened(_ exchange: Exchange, _ result: Result<PartialFile, PartialFile.Failure>) {
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

    private func goOn(_ exchange: Exchange) {
        // What libcurl held back goes through the callbacks inside this call; what they refuse ends the exchange.
        let code = exchange.resumeIfDue()
        if code != CURLE_OK { return finish(exchange, exchange.ending(code)) }
        noteDeadline(of: exchange)
    }

    private func sync(_ exchange: Exchange) {
        guard let file = exchange.sink.file else { return }
        exchange.isSyncing = true
        exchange.lastSync = state.now
        let offset = exchange.sink.length
        exchange.sink.syncRequested = offset
        let (id, mailbox) = (exchange.id, mailbox)
        let isTaken = surroundings.disk.post {
            do throws(DiskError) {
                try file.sync()
                mailbox.post(.synced(id, offset: offset, nil))
            } catch { mailbox.post(.synced(id, offset: offset, error)) }
        }
        if !isTaken { exchange.isSyncing = false }
    }

    private func synced(_ exchange: Exchange, _ offset: Int64, _ error: DiskError?) {
        exchange.isSyncing = false
        if let error { return fail(exchange, .disk(errno: error.errno)) }
        if case .concluding = exchange.stage { return }
        surroundings.report(.durable(exchange.id, offset: offset))
        noteDeadline(of: exchange)
    }

    // MARK: The end

    /// Takes from libcurl what it is done with, and what its callbacks asked for.
    private func collect(_ pool: ConnectionPool) {
        while let (raw, code) = pool.nextFinished() {
            var context: UnsafeMutablePointer<CChar>?
            guard ccurl_easy_get_string(raw, CURLINFO_PRIVATE, &context) == CURLE_OK, let context else { continue }
            // The exchange set itself as the handle's private pointer and lives as long as the handle is in the pool.
            let exchange = Unmanaged<Exchange>.fromOpaque(context).takeUnretainedValue()
            if case .probing(let ending) = exchange.stage {
                probed(exchange, ending)
            } else {
                finish(exchange, exchange.ending(code))
            }
        }
    }

    private func finish(_ exchange: Exchange, _ ending: Exchange.Ending) {
        release(exchange)
        if case .failed(let fault) = ending.outcome, fault.isTrustFailure, endAt == nil {
            return probe(exchange, ending)
        }
        conclude(exchange, ending)
    }

    private func fail(_ exchange: Exchange, _ fault: TransferFault, _ code: CURLcode = CURLE_OK) {
        if case .concluding = exchange.stage {
            exchange.fault = exchange.fault ?? fault
            return
        }
        release(exchange)
        conclude(exchange, Exchange.Ending(outcome: .failed(fault), code: code, message: ""))
    }

    private func stop(_ exchange: Exchange) {
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
    private func release(_ exchange: Exchange) {
        guard let easy = exchange.easy else { return }
        exchange.noteFacts(of: easy)
        giveBackHandle(of: exchange)
    }

    private func giveBackHandle(of exchange: Exchange) {
        guard let easy = exchange.easy, let pool = exchange.pool else { return }
        pool.remove(easy)
        easy.reset()
        if spare.count < Self.maximumSpare { spare.append(easy) }
        exchange.easy = nil
        exchange.pool = nil
        if pool.active == 0, let index = retired.firstIndex(where: { $0 === pool }) {
            retired.remove(at: index)
            pool.close()
        }
    }

    /// Asks a server that was not trusted for its key, so that somebody can decide about it.
    private func probe(_ exchange: Exchange, _ ending: Exchange.Ending) {
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

    private func probed(_ exchange: Exchange, _ ending: Exchange.Ending) {
        var ending = ending
        if let lines = exchange.easy?.serverCertificate, let pem = lines.first(where: { $0.hasPrefix("Cert:") }) {
            ending.serverPublicKey = ServerKey.pin(ofPEM: pem)
        }
        giveBackHandle(of: exchange)
        conclude(exchange, ending)
    }

    private func conclude(_ exchange: Exchange, _ outcome: ExchangeOutcome) {
        conclude(exchange, Exchange.Ending(outcome: outcome, code: CURLE_OK, message: ""))
    }

    /// Waits for the disk, syncs what is new, then tells.
    private func conclude(_ exchange: Exchange, _ ending: Exchange.Ending) {
        exchange.stage = .concluding(ending)
        if exchange.isOpening { return exchange.meter.isAbandoned.store(true, ordering: .relaxed) }
        // What begins anew must not leave the old bytes behind, even where no new one came.
        if exchange.wantedPrefix != nil, exchange.resumeOffset > 0 { return serve(exchange) }
        guard exchange.sink.unsynced > 0 || exchange.isSyncing, let file = exchange.sink.file else {
            return deliver(exchange, ending)
        }
        let (id, mailbox) = (exchange.id, mailbox)
        let isTaken = surroundings.disk.post {
            do throws(DiskError) {
                try file.sync()
                mailbox.post(.closed(id, nil))
            } catch { mailbox.post(.closed(id, error)) }
        }
        if !isTaken { closed(exchange, DiskError("fdatasync", errno: ESHUTDOWN)) }
    }

    private func closed(_ exchange: Exchange, _ error: DiskError?) {
        guard case .concluding(let ending) = exchange.stage else { return }
        if let error { exchange.fault = exchange.fault ?? .disk(errno: error.errno) }
        deliver(exchange, ending)
    }

    private func deliver(_ exchange: Exchange, _ ending: Exchange.Ending) {
        var ending = ending
        // The disk has the last word on what seemed well.
        if ending.outcome == .complete, let fault = exchange.fault { ending.outcome = .failed(fault) }
        if ending.outcome == .failed(.egressDenied), let denied = exchange.denied {
            surroundings.log.warning(
                "an exchange was refused an address", ("host", exchange.url.host), ("address", denied.address),
                ("port", denied.port), ("pool", exchange.request.pool))
        }
        exchanges[exchange.id] = nil
        surroundings.directory.leave(exchange.id)
        surroundings.report(.ended(exchange.id, exchange.result(ending)))
    }

    /// At the very end, for exchanges that the disk kept waiting too long.
    private func abandon(_ exchange: Exchange) {
        release(exchange)
        surroundings.directory.leave(exchange.id)
        let ending = Exchange.Ending(outcome: .stopped, code: CURLE_OK, message: "")
        surroundings.report(.ended(exchange.id, exchange.result(ending)))
    }

    /// Opens the file that a callback found to be needed.
    private func serve(_ exchange: Exchange) {
        guard let prefix = exchange.wantedPrefix else { return }
        exchange.wantedPrefix = nil
        openFile(exchange, prefix: prefix)
    }

    // MARK: Limits

    private func noteDeadline(of exchange: Exchange) {
        let deadline = exchange.deadline
        if deadline < nextSweep { nextSweep = max(deadline, state.now + Self.sweepPrecision) }
    }

    /// Looks at every exchange's limits, and closes pools that nobody used for a while.
    private func sweep() {
        nextSweep = .max
        for exchange in Array(exchanges.values) {
            if let fault = exchange.overdue {
                fail(exchange, fault)
                continue
            }
            if case .running = exchange.stage, exchange.wantsSync { sync(exchange) }
            if exchange.mayGoOn { goOn(exchange) } else { noteDeadline(of: exchange) }
        }
        for (number, pool) in pools where pool.active == 0 {
            let end = pool.idleSince + Self.idlePoolLifetime
            if end <= state.now {
                pools[number] = nil
                pool.close()
                state.alarmsChanged = true
            } else {
                nextSweep = min(nextSweep, end)
            }
        }
    }
}

@available(*, unavailable)
extension TransferLoop: Sendable {}
