import CSimulation
import Glibc

/// Many runs, each in its own process, and their report.
struct Campaign {
    private var options: [String: String] = [:]

    init(arguments: [String]) {
        var name: String?
        for argument in arguments {
            if argument.hasPrefix("--") {
                name = String(argument.dropFirst(2))
                options[name ?? ""] = "1"
            } else if let option = name {
                options[option] = argument
                name = nil
            }
        }
    }

    /// The result of a run, written by its process.
    struct Outcome {
        var violation: String?
        var hash = ""
        var steps = 0
        var lines: [String] = []
        var counts: [String: Int] = [:]
    }

    /// The restrictions of a seed's run.
    struct Narrowing {
        var with: Set<Plan.Fault> = []
        var without: Set<Plan.Fault> = []
        var clients: Int?
        var tasks: Int?
    }

    private func number(_ name: String) -> Int? { options[name].flatMap { Int($0) } }

    private var narrowing: Narrowing {
        func faults(_ option: String) -> Set<Plan.Fault> {
            Set((options[option] ?? "").split(separator: ",").map(String.init).compactMap(Plan.Fault.init))
        }
        return Narrowing(
            with: faults("with"), without: faults("without"), clients: number("clients"), tasks: number("tasks"))
    }

    func run() -> Int32 {
        if options["planted"] != nil { return findPlanted() }
        if let seed = number("seed") { return runAlone(seed) }
        let (count, first) = (number("seeds") ?? (options["seconds"] == nil ? 100 : 1_000_000), number("first") ?? 1)
        let start = csim_real_now()
        var counts: [String: Int] = [:]
        var (failures, steps) = ([Int](), 0)
        var (done, running, next) = (0, [Running](), first)
        while failures.count < number("failures") ?? 10 {
            let isLate = number("seconds").map { csim_real_now() - start > Int64($0) * 1_000_000_000 } ?? false
            while running.count < number("jobs") ?? 2, next < first + count, !isLate {
                running.append(begin(next, narrowing))
                next += 1
            }
            guard !running.isEmpty else { break }
            let (seed, outcome) = (running[0].seed, end(running.removeFirst()))
            done += 1
            steps += outcome.steps
            for (name, count) in outcome.counts { counts[name, default: 0] += count }
            if let violation = outcome.violation {
                failures.append(seed)
                print("seed \(seed): \(violation)")
                if options["plant"] != nil { break }
                if failures.count <= 3, options["shrink"] != "no" { shrink(seed) }
            } else if seed % 20 == 1, perform(seed, narrowing).hash != outcome.hash {
                // Some seeds run twice: the same seed is the same run.
                print("seed \(seed) is not the same run twice")
                failures.append(seed)
            }
        }
        for other in running { _ = end(other) }
        let seconds = Double(csim_real_now() - start) / 1_000_000_000
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) { print("met: \(count) \(name)") }
        print(Coverage.report(counts))
        let speed = (Double(done) / seconds * 10).rounded() / 10
        print(
            "\(done) seeds, \(steps) steps, \(Int(seconds)) s, \(speed) seeds a second, \(failures.count) failures \(failures)"
        )
        return failures.isEmpty ? 0 : 1
    }

    /// Plants each fault, and reports after how many seeds it is found.
    private func findPlanted() -> Int32 {
        let (limit, first) = (number("seeds") ?? 200, number("first") ?? 1)
        var missed = 0
        for fault in PlantedFault.allCases where options["planted"] == "1" || options["planted"] == fault.rawValue {
            var campaign = self
            campaign.options["plant"] = fault.rawValue
            if !fault.needed.isEmpty { campaign.options["with"] = fault.needed.map(\.rawValue).joined(separator: ",") }
            var found: (count: Int, text: String)?
            for seed in first..<(first + limit) {
                guard let violation = campaign.perform(seed, campaign.narrowing).violation else { continue }
                found = (seed - first + 1, violation)
                break
            }
            if found == nil { missed += 1 }
            print(
                "\(fault.rawValue): \(found.map { "after \($0.count) seeds: \($0.text.prefix(150))" } ?? "not found in \(limit) seeds")"
            )
        }
        return missed == 0 ? 0 : 1
    }

    /// Runs one seed twice, with its trace, and compares both runs.
    private func runAlone(_ seed: Int) -> Int32 {
        let outcome = perform(seed, narrowing)
        print("seed \(seed): \(outcome.steps) steps, hash \(outcome.hash), \(outcome.violation ?? "no violation")")
        let again = perform(seed, narrowing, isQuiet: true)
        guard again.hash == outcome.hash else {
            print("not the same run twice: \(again.hash), \(again.steps) steps")
            return 2
        }
        return outcome.violation == nil ? 0 : 1
    }

    /// Finds a smaller run of the seed that fails in the same way, and prints the command that repeats it.
    private func shrink(_ seed: Int) {
        var narrowing = narrowing
        var best = perform(seed, narrowing)
        func isSame(_ outcome: Outcome) -> Bool { kind(outcome.violation) == kind(best.violation) }
        for fault in Plan.Fault.allCases where !narrowing.without.contains(fault) {
            var next = narrowing
            next.without.insert(fault)
            let outcome = perform(seed, next)
            if isSame(outcome) { (narrowing, best) = (next, outcome) }
        }
        for clients in 1...3 {
            var next = narrowing
            next.clients = clients
            let outcome = perform(seed, next)
            if isSame(outcome) {
                (narrowing, best) = (next, outcome)
                break
            }
        }
        for tasks in [1, 2, 3, 5] {
            var next = narrowing
            next.tasks = tasks
            let outcome = perform(seed, next)
            if isSame(outcome) {
                (narrowing, best) = (next, outcome)
                break
            }
        }
        for line in best.lines.suffix(60) { print("    \(line)") }
        var words = "    repeat: simulate --seed \(seed)"
        if !narrowing.with.isEmpty {
            words += " --with \(narrowing.with.map(\.rawValue).sorted().joined(separator: ","))"
        }
        if !narrowing.without.isEmpty {
            words += " --without \(narrowing.without.map(\.rawValue).sorted().joined(separator: ","))"
        }
        if let clients = narrowing.clients { words += " --clients \(clients)" }
        if let tasks = narrowing.tasks { words += " --tasks \(tasks)" }
        print(words)
    }

    /// The text of a violation without its numbers.
    private func kind(_ violation: String?) -> String? {
        violation.map { $0.filter { !$0.isNumber }.prefix(40).description }
    }

    // MARK: Processes

    private struct Running {
        var seed: Int
        var pipe: Int32
        var process: pid_t
    }

    private func perform(_ seed: Int, _ narrowing: Narrowing, isQuiet: Bool = false) -> Outcome {
        end(begin(seed, narrowing, isQuiet: isQuiet))
    }

    private func begin(_ seed: Int, _ narrowing: Narrowing, isQuiet: Bool = false) -> Running {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { exit(2) }
        let child = csim_fork()
        if child == 0 {
            dup2(ends[1], 3)
            live(seed, narrowing, isQuiet)
        }
        close(ends[1])
        return Running(seed: seed, pipe: ends[0], process: child)
    }

    private func end(_ running: Running) -> Outcome {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = read(running.pipe, &buffer, buffer.count)
            if count <= 0 { break }
            text += buffer[..<count]
        }
        close(running.pipe)
        var status: Int32 = 0
        waitpid(running.process, &status, 0)
        var outcome = parse(String(decoding: text, as: UTF8.self))
        if status != 0, outcome.violation == nil {
            outcome.violation =
                "The process ended with \(status & 0x7F != 0 ? "the signal \(status & 0x7F)" : "the status \(status >> 8)")"
        }
        return outcome
    }

    private func parse(_ text: String) -> Outcome {
        var outcome = Outcome()
        for line in text.split(separator: "\n") {
            let rest = String(line.dropFirst(2))
            switch line.first {
            case "V": outcome.violation = rest
            case "H": outcome.hash = rest
            case "S": outcome.steps = Int(rest) ?? 0
            case "L": outcome.lines.append(rest)
            case "C":
                let parts = rest.split(separator: " ", maxSplits: 1)
                if parts.count == 2 { outcome.counts[String(parts[1])] = Int(parts[0]) }
            default: break
            }
        }
        return outcome
    }

    /// The life of a process that runs one seed, and ends.
    private func live(_ seed: Int, _ narrowing: Narrowing, _ isQuiet: Bool) -> Never {
        let folder = "\(options["folder"] ?? "/dev/shm")/simulate-\(getpid())"
        for descriptor in Int32(4)..<64 { close(descriptor) }
        // The rest of a run that never ends.
        alarm(UInt32(number("limit") ?? 300))
        csim_begin(UInt64(seed))
        csim_watch_states()
        let planted = options["plant"].flatMap(PlantedFault.init)
        planted?.plant()
        let plan = Plan(
            seed: UInt64(seed), with: narrowing.with, without: narrowing.without, clients: narrowing.clients,
            tasks: narrowing.tasks)
        let world = World(
            plan: plan, planted: planted, folder: folder, printsAll: options["verbose"] != nil && !isQuiet)
        var violation: String?
        do throws(Violation) { try world.run() } catch { violation = error.text }
        let losses = csim_losses()
        let facts = [
            ("crash kept bytes", losses.kept), ("crash lost bytes", losses.lost), ("crash tore bytes", losses.torn),
            ("crash changed names", losses.names), ("write failed", csim_faults_met(csim_write)),
            ("sync failed", csim_faults_met(csim_sync)), ("read failed", csim_faults_met(csim_read)),
        ]
        var text = "H \(String(world.trace.hash, radix: 16))\nS \(world.simulator.steps)\n"
        var (index, name, times): (Int32, UnsafePointer<CChar>?, Int64) = (0, nil, 0)
        while csim_transition(index, &name, &times) != 0 {
            if let name { text += "C \(times) \(String(cString: name))\n" }
            index += 1
        }
        for (name, count) in facts where count > 0 { text += "C \(count) \(name)\n" }
        for (name, count) in world.trace.counts { text += "C \(count) \(name)\n" }
        for line in world.trace.last { text += "L \(line.filter { $0 != "\n" })\n" }
        if let violation { text += "V \(violation.filter { $0 != "\n" })\n" }
        let bytes = Array(text.utf8)
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes { write(3, $0.baseAddress, $0.count) }
            if count <= 0 { break }
            sent += count
        }
        csim_remove(folder)
        _exit(0)
    }
}
