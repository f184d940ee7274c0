import Base
import CSimulation
import Core

/// All steps of one run, on one thread: Swift jobs, threads of the program, timers and the network, in an order that
/// only the seed decides.
final class Simulator: @unchecked Sendable {
    let plan: Plan
    let trace: Trace
    private var jobs: [(job: UnownedJob, lane: Lane)] = []
    private var timers = Timers()
    /// Called after each step, for the network.
    var attend: () -> Void = {}
    /// Called after each step in which the program of a machine has crashed.
    var onCrash: (Int32) -> Void = { _ in }
    private(set) var steps = 0

    init(plan: Plan, trace: Trace) {
        self.plan = plan
        self.trace = trace
    }

    /// Milliseconds since the start of the run.
    var now: Int64 { csim_now() / 1_000_000 - 1_000_000 }

    fileprivate func add(_ job: UnownedJob, _ lane: Lane) {
        if csim_has_crashed(lane.machine) != 0 { return }
        jobs.append((job, lane))
    }

    /// Drops the jobs of a crashed program: they never run.
    func drop(_ lane: Lane) { jobs.removeAll { $0.lane === lane } }

    /// Calls `body` after a number of milliseconds.
    func after(_ milliseconds: Double, _ body: @escaping () -> Void) {
        timers.add(csim_now() + Int64(milliseconds * 1_000_000), body)
    }

    /// Suspends a Swift task of the surroundings.
    func pause(_ milliseconds: Double) async {
        await withCheckedContinuation { continuation in after(milliseconds) { continuation.resume() } }
    }

    /// Runs until `isOver`. Throws ``Violation`` if no step is possible any more, or after too many steps.
    func run(until isOver: () -> Bool) throws(Violation) {
        while !isOver() {
            step()
            attend()
            for machine in 1..<Int32(csim_machines) where csim_has_crashed(machine) != 0 { onCrash(machine) }
            if let violation = trace.violation { throw violation }
            if steps > plan.maximumSteps { throw Violation("There is no end: \(steps) steps, \(now) ms.") }
            if isStuck { throw Violation("Nothing will ever happen again.") }
        }
    }

    private var isStuck = false

    private func step() {
        steps += 1
        var ready = [Int32](repeating: 0, count: 64)
        let threads = Int(csim_ready_threads(&ready, 64))
        var attended = [Int32](repeating: 0, count: 128)
        let sessions = Int(csim_ready_sessions(&attended))
        let isTimerDue = csim_next_timer() <= csim_now()
        let isOwnDue = timers.next <= csim_now()
        let eligible = jobs.indices.filter { csim_is_paused(jobs[$0].lane.machine) == 0 }
        let count = eligible.count + threads + sessions + (isTimerDue ? 1 : 0) + (isOwnDue ? 1 : 0)
        guard count > 0 else { return jump() }
        var choice = Int(csim_below(Int32(csim_order.rawValue), UInt64(count)))
        csim_advance(csim_now() + Int64(csim_below(Int32(csim_order.rawValue), 40_000)))
        trace.mix(UInt64(truncatingIfNeeded: count &* 1_000_003 &+ choice) ^ UInt64(bitPattern: csim_now()))
        if choice < eligible.count {
            let (job, lane) = jobs.remove(at: eligible[choice])
            let machine = csim_enter(lane.machine)
            job.runSynchronously(on: lane.asUnownedTaskExecutor())
            csim_enter(machine)
            return
        }
        choice -= eligible.count
        if choice < threads { return csim_run_thread(ready[choice]) }
        choice -= threads
        if choice < sessions { return csim_serve(attended[choice]) }
        choice -= sessions
        if choice == 0, isTimerDue { return csim_fire_timer() }
        let body = timers.pop()
        body()
    }

    /// No step is possible now: advance the clock.
    private func jump() {
        let next = min(csim_next_timer(), csim_next_wakeup(), csim_next_service(), timers.next)
        isStuck = next == .max
        if !isStuck { csim_advance(next) }
    }
}

/// Runs Swift jobs when the simulator chooses them.
final class Lane: TaskExecutor, @unchecked Sendable {
    private let simulator: Simulator
    /// The machine whose program the jobs belong to, which may crash; 0 for its surroundings.
    let machine: Int32

    init(_ simulator: Simulator, machine: Int32) {
        self.simulator = simulator
        self.machine = machine
    }

    func enqueue(_ job: consuming ExecutorJob) { simulator.add(UnownedJob(job), self) }
}

/// Closures by their time.
private struct Timers {
    private var all: [(time: Int64, body: () -> Void)] = []

    var next: Int64 { all.last?.time ?? .max }

    mutating func add(_ time: Int64, _ body: @escaping () -> Void) {
        // The earliest is the last; of equal times the first added.
        let index = all.firstIndex { $0.time <= time } ?? all.endIndex
        all.insert((time, body), at: index)
    }

    mutating func pop() -> () -> Void { all.popLast()?.body ?? {} }
}

/// A violated invariant.
struct Violation: Error {
    var text: String
    init(_ text: String) { self.text = text }
}

/// The trace, as lines and as a number that is equal for equal runs.
final class Trace: @unchecked Sendable {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private var lines: [String] = []
    private let printsAll: Bool
    private(set) var violation: Violation?
    var counts: [String: Int] = [:]

    init(printsAll: Bool) { self.printsAll = printsAll }

    func mix(_ number: UInt64) { hash = (hash ^ number) &* 0x100_0000_01B3 }

    func note(_ line: @autoclosure () -> String) {
        let time = (csim_now() - 1_000_000_000_000) / 1_000
        let line = "\(time / 1_000_000).\(String(1_000_000 + time % 1_000_000).dropFirst()) \(line())"
        for byte in line.utf8 { mix(UInt64(byte)) }
        if printsAll { print(line) }
        lines.append(line)
        if lines.count > 4000 { lines.removeFirst(2000) }
    }

    /// Counts a rare situation for the report of coverage.
    func met(_ name: String) { counts[name, default: 0] += 1 }

    func fail(_ text: String) {
        guard violation == nil, csim_has_crashed(csim_machine()) == 0 else { return }
        note("VIOLATION \(text)")
        violation = Violation(text)
    }

    var last: ArraySlice<String> { lines.suffix(400) }
}

/// Numbers from one stream of the seed.
struct Dice: RandomNumberGenerator {
    let stream: Int32

    static let network = Dice(csim_network)
    static let clients = Dice(csim_clients)
    static let plan = Dice(csim_plan)
    static let stores = Dice(csim_stores)
    static let database = Dice(csim_database)
    static let readers = Dice(csim_readers)
    static let reads = Dice(csim_reads)
    static let extras = Dice(csim_extras)

    private init(_ stream: csim_stream) { self.stream = Int32(stream.rawValue) }

    func next() -> UInt64 { csim_draw(stream) }

    func below(_ limit: Int) -> Int { Int(csim_below(stream, UInt64(limit))) }
    func chance(_ permille: Int) -> Bool { below(1000) < permille }
    func pick<T>(_ values: [T]) -> T { values[below(values.count)] }
    func between(_ low: Double, _ high: Double) -> Double {
        low + (high - low) * Double(below(1 << 20)) / Double(1 << 20)
    }
}
