import Base
import Core
import Files

/// Services shared by the loops of one engine.
struct LoopSurroundings: Sendable {
    let disk: DiskQueue
    let room: DiskRoom
    /// The number of buffers of each loop for content that is written.
    let buffers: Int
    let partMemory: PartMemory
    let resolver: Resolver
    let calm: CalmOrigins
    let directory: ExchangeDirectory
    let log: Log
    let clock: Clock
    let report: @Sendable (ExchangeReport) -> Void
}

/// The loop of one `transfer` thread.
///
/// Sequential code without locks: no other thread can access these properties.
final class TransferLoop {
    let surroundings: LoopSurroundings
    let commands: CommandQueue
    let epoll: Epoll
    let watch: SocketWatch
    let state = LoopState()
    let buffers: BufferPool
    /// For bodies that are read ahead.
    let bodyBuffers: BufferPool
    var exchanges: [ExchangeID: Exchange] = [:]
    var pools: [Int64: ConnectionPool] = [:]
    /// Pools whose connections must not be reused, until their last exchange ends.
    var retired: [ConnectionPool] = []
    var spare: [Easy] = []
    /// The earliest timeout of a pool.
    var nextAlarm = Int64.max
    /// When the limits of the exchanges are checked next.
    var nextSweep = Int64.max
    var endAt: Int64?

    static let maximumSpare = 256
    /// The precision of limits, so that thousands of them do not cost a sweep each.
    static let sweepPrecision: Int64 = 25
    static let idlePoolLifetime: Int64 = 60_000
    static let maximumAnswers = 64

    init(_ surroundings: LoopSurroundings, _ commands: CommandQueue) throws(SystemError) {
        self.surroundings = surroundings
        self.commands = commands
        epoll = try Epoll()
        watch = SocketWatch(epoll)
        buffers = BufferPool(limit: surroundings.buffers, room: surroundings.room) { commands.post(.shareBuffers) }
        bodyBuffers = BufferPool(limit: max(ReadAhead.depth, surroundings.buffers / 4), room: nil) {}
        epoll.watch(commands.wakeup, .read)
    }

    func run() {
        state.now = surroundings.clock.monotonic()
        while !isFinished { turn() }
        for exchange in exchanges.values { abandon(exchange) }
        for pool in allPools { pool.close() }
        pools = [:]
        retired = []
    }

    var isFinished: Bool {
        guard let endAt else { return false }
        return exchanges.isEmpty || state.now >= endAt
    }

    /// Waits for events, passes them to libcurl, reports ended exchanges.
    func turn() {
        var hasMail = false
        epoll.wait(milliseconds: patience()) { descriptor, ready in
            // Read after the wait, before the first callback uses it.
            state.now = surroundings.clock.monotonic()
            if descriptor == commands.wakeup {
                hasMail = true
            } else if let pool = watch.owner(of: descriptor) {
                pool.act(on: descriptor, ready)
                collect(pool)
            }
        }
        state.now = surroundings.clock.monotonic()
        if hasMail {
            for command in commands.take() { carryOut(command) }
        }
        actOnAlarms()
        attend()
        if !state.awaitingBuffer.isEmpty { shareBuffers() }
        if nextSweep <= state.now { sweep() }
    }

    func patience() -> Int32 {
        findNextAlarm()
        let due = min(nextAlarm, nextSweep, endAt ?? .max)
        guard due < .max else { return -1 }
        return Int32(clamping: max(0, due - surroundings.clock.monotonic()))
    }

    func actOnAlarms() {
        findNextAlarm()
        guard nextAlarm <= state.now else { return }
        for pool in allPools {
            pool.actOnAlarm()
            collect(pool)
        }
        findNextAlarm()
    }

    func findNextAlarm() {
        guard state.alarmsChanged else { return }
        state.alarmsChanged = false
        nextAlarm = allPools.compactMap(\.alarm).min() ?? .max
    }

    /// Performs the work that callbacks requested.
    func attend() {
        while let exchange = state.needingAttention.popLast() {
            guard case .running(let running) = exchange.stage else { continue }
            running.needsAttention = false
            if running.lostSocket { running.tryNextAddress() }
            attendFile(of: running)
            noteDeadline(of: exchange)
        }
    }

    // MARK: Commands

    func carryOut(_ command: LoopCommand) {
        switch command {
        case .start(let request, let meter): start(request, meter)
        case .tell(let id, let news): if let exchange = exchanges[id] { tell(exchange, news) }
        case .closeConnections(let pool): retire(pool)
        // Performed at the end of each turn.
        case .shareBuffers: break
        case .shutDown(let end):
            endAt = min(endAt ?? .max, end)
            for exchange in Array(exchanges.values) { self.end(exchange, .stopped) }
        }
    }

    private func tell(_ exchange: Exchange, _ news: ExchangeNews) {
        switch news {
        case .stop: end(exchange, .stopped)
        case .limit(let limit):
            exchange.setLimit(limit)
            goOn(exchange)
        case .recorded(let offset):
            if case .running(let running) = exchange.stage, running.note(recorded: offset) { goOn(exchange) }
        case .maximumUnrecorded(let count):
            exchange.maximumUnrecorded = count
            if case .running(let running) = exchange.stage, running.note(recorded: 0) { goOn(exchange) }
        case .end(let offset): shorten(exchange, to: offset)
        case .named(let name, .asked): turnCame(exchange, name)
        case .named(let name, .answered(let resolution)): resolved(exchange, name, resolution)
        case .bodyOpened(let result): bodyOpened(exchange, result)
        case .bodyRead(let arrival): bodyRead(exchange, arrival)
        case .fileOpened(let result): fileOpened(exchange, result)
        case .file(let news): take(news, of: exchange)
        }
    }

    func start(_ request: ExchangeRequest, _ meter: ExchangeMeter) {
        let exchange = Exchange(
            request, meter, state, surroundings.room, buffers, seat(of: request), at: surroundings.clock.wall(),
            report: surroundings.report)
        exchanges[request.id] = exchange
        guard Exchange.isSendable(request) else { return fail(exchange, .badRequest) }
        guard endAt == nil else { return end(exchange, .stopped) }
        if case .preparing(let preparation) = exchange.stage { prepare(exchange, preparation) }
    }

    /// The exchange's place in the queue for part memory. Its wake-up has the form of a recorded offset.
    private func seat(of request: ExchangeRequest) -> PartMemory.Seat? {
        guard case .parts = request.sink else { return nil }
        return surroundings.partMemory.seat(of: request.pool) { [commands] in
            commands.post(.recorded(0), to: request.id)
        }
    }

    // MARK: Pools

    private var allPools: [ConnectionPool] { Array(pools.values) + retired }

    func pool(_ number: Int64) -> ConnectionPool {
        if let pool = pools[number] { return pool }
        let pool = ConnectionPool(watch, state)
        pools[number] = pool
        nextSweep = min(nextSweep, state.now + Self.idlePoolLifetime)
        return pool
    }

    func retire(_ number: Int64) {
        guard let pool = pools.removeValue(forKey: number) else { return }
        if pool.active == 0 { pool.close() } else { retired.append(pool) }
        state.alarmsChanged = true
    }

    // MARK: Limits

    func noteDeadline(of exchange: Exchange) {
        let deadline = exchange.deadline
        if deadline < nextSweep { nextSweep = max(deadline, state.now + Self.sweepPrecision) }
    }

    /// Checks the limits of every exchange, and closes pools that were idle for a while.
    func sweep() {
        nextSweep = .max
        for exchange in Array(exchanges.values) {
            let running = if case .running(let running) = exchange.stage { running } else { Exchange.Running?.none }
            if let fault = exchange.overdue {
                let isAnswered = fault == .idleTimeout && running?.isAnswered ?? false
                end(exchange, isAnswered ? .complete : .failed(fault))
                continue
            }
            if let running {
                attendFile(of: running)
                running.sending.body?.ahead?.giveBack(at: state.now)
            }
            goOn(exchange)
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
