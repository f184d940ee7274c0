package import Base
import Core
package import Files
import Synchronization

/// Transfers bytes between URLs and files or memory: one HTTP exchange for each request.
///
/// No retries, no states, no redirects, no policy but the egress gate. May be called from any thread. Each `transfer`
/// thread drives libcurl's handles with `curl_multi_socket_action` over one epoll descriptor.
package final class TransferEngine: Sendable {
    /// The engine's disk threads.
    package let disk: DiskQueue
    /// The disk space left for content.
    package let room: DiskRoom
    private let queues: [CommandQueue]
    private let directory: ExchangeDirectory
    private let resolver: Resolver
    private let clock: Clock
    private let report: @Sendable (ExchangeReport) -> Void
    private let living: Living

    /// - Parameters:
    ///   - threads: The number of loops, each with its own connections.
    ///   - lookUps: The limits of concurrent name look-ups.
    ///   - buffers: The number of 1 MiB buffers for content that is written.
    ///   - room: The disk space for content; unlimited until it is measured.
    ///   - partMemory: For parts of objects that are longer than usual.
    ///   - resolve: Resolves names: the system's resolver, except in tests.
    ///   - report: Called on the engine's threads, in order for each exchange. Must not wait.
    package init(
        threads: Int, diskThreads: Int = 4, lookUps: LookUpLimits = LookUpLimits(), buffers: Int = 64, log: Log,
        clock: Clock = .system, room: DiskRoom = DiskRoom(floor: 0), partMemory: PartMemory = PartMemory(),
        resolve: @escaping @Sendable (String) -> Resolution = Resolution.ofSystem,
        report: @escaping @Sendable (ExchangeReport) -> Void
    ) throws {
        guard Curl.isReady else { throw SystemError("curl_global_init", errno: 0) }
        let count = max(1, threads)
        self.clock = clock
        self.room = room
        self.report = report
        disk = try DiskQueue(threads: diskThreads)
        resolver = Resolver(lookUps, clock: clock, resolve: resolve)
        directory = ExchangeDirectory(loops: count)
        queues = try (0..<count).map { _ in try CommandQueue() }
        living = Living(count)
        let surroundings = LoopSurroundings(
            disk: disk, room: room, buffers: max(1, buffers / count), partMemory: partMemory, resolver: resolver,
            calm: CalmOrigins(),
            directory: directory, log: log, clock: clock, report: report)
        for (index, queue) in queues.enumerated() {
            let living = living
            try SystemThread.start("transfer-\(index)") {
                defer { living.ended() }
                do throws(SystemError) {
                    try TransferLoop(surroundings, queue).run()
                } catch {
                    log.error("a transfer thread could not start", ("error", error))
                }
            }
        }
    }

    deinit {
        directory.close()
        for queue in queues { queue.post(.shutDown(at: .min)) }
    }

    /// Starts an exchange. It is reported in any case, and ended exactly once.
    package func start(_ request: ExchangeRequest) {
        var hasher = Hasher()
        hasher.combine(request.pool)
        hasher.combine(request.url.host)
        let preferred = Int(UInt(bitPattern: hasher.finalize()) >> 1)
        let meter = ExchangeMeter()
        guard let loop = directory.enter(request.id, preferred: preferred, meter) else {
            return report(.ended(request.id, ExchangeResult(stopped: request, at: clock.wall())))
        }
        queues[loop].post(.start(request, meter))
    }

    /// Ends an exchange as ``ExchangeOutcome/stopped``, with its partial file synced. No effect after its end.
    package func stop(_ id: ExchangeID) {
        tell(id, .stop)
    }

    /// Reports that content up to this offset is recorded and need not be received again, so that more may be read.
    package func recorded(_ id: ExchangeID, upTo offset: Int64) {
        tell(id, .recorded(offset))
    }

    /// Reports that content after this offset is not wanted: the exchange is complete with the content before it.
    package func shorten(_ id: ExchangeID, to offset: Int64) {
        tell(id, .end(offset))
    }

    /// Sets the bandwidth limit of each direction in bytes per second; `nil` for no limit.
    package func setBandwidthLimit(_ id: ExchangeID, _ limit: Int64?) {
        tell(id, .limit(limit))
    }

    /// Sets ``ExchangeRequest/maximumUnrecorded``.
    package func setMaximumUnrecorded(_ id: ExchangeID, _ count: Int64) {
        tell(id, .maximumUnrecorded(count))
    }

    private func tell(_ id: ExchangeID, _ news: ExchangeNews) {
        guard let loop = directory.loop(of: id) else { return }
        queues[loop].post(news, to: id)
    }

    /// The progress of an exchange; `nil` if it does not run.
    package func progress(_ id: ExchangeID) -> ExchangeProgress? { directory.progress(of: id) }

    /// The number of running exchanges.
    package var count: Int { directory.count }

    /// Closes a pool's idle connections now, and its used ones when their exchanges end. None is reused.
    package func closeConnections(pool: Int64) {
        for queue in queues { queue.post(.closeConnections(pool: pool)) }
    }

    /// Stops all exchanges and ends the threads once the files are synced, after `limit` at the latest.
    package func shutdown(within limit: Duration) async {
        directory.close()
        let end = clock.monotonic().addingSaturated(limit.milliseconds)
        for queue in queues { queue.post(.shutDown(at: end)) }
        await living.waitForEnd()
        resolver.close()
        disk.close()
    }
}

/// The number of running loops, and the callers that wait for their end.
private final class Living: Sendable {
    private let state: Locked<(count: Int, waiting: [CheckedContinuation<Void, Never>])>

    init(_ count: Int) { state = Locked((count, [])) }

    func ended() {
        let waiting = state.withLock { state in
            state.count -= 1
            guard state.count == 0 else { return [CheckedContinuation<Void, Never>]() }
            return state.waiting.takeAll()
        }
        for continuation in waiting { continuation.resume() }
    }

    func waitForEnd() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if state.count > 0 { state.waiting.append(continuation) }
                return state.count == 0
            }
            if isOver { continuation.resume() }
        }
    }
}

extension ExchangeResult {
    /// The result of an exchange that never began.
    fileprivate init(stopped request: ExchangeRequest, at now: Int64) {
        self.init(
            outcome: .stopped, metrics: TransactionMetrics(of: request, at: now), cookies: request.cookies ?? [])
        if case .content(let path, let offset, _, _, _) = request.sink, offset > 0 {
            (length, received) = (offset, .file(path: path, length: offset))
        }
    }
}
