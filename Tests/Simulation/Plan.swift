import CSimulation

/// What kind of run a seed makes: which faults there are, and how much of everything.
struct Plan {
    /// A kind of fault. Each run has some of them.
    enum Fault: String, CaseIterable {
        // Of origins.
        case cuts, resets, stalls, statuses, versions, ranges, redirects, frames, validators, slowness, challenges
        // Of the network.
        case refusals, names, hangs
        // Of receivers.
        case receivers
        // Of the machine.
        case kills, powerCuts, fatalSignals, fullDisk, writeErrors, syncErrors, clockJumps, delays
        // Of clients.
        case commands, sessions, retries, attachments, bodies, apps
    }

    var seed: UInt64
    var faults: Set<Fault>
    var clients: Int
    /// Tasks that each client creates.
    var tasks: Int
    /// Milliseconds until the faults stop.
    var troubledTime: Int64
    var maximumSteps = 1_000_000

    /// Draws a plan. A narrower one is given to shrink a run.
    init(seed: UInt64, without: Set<Fault> = [], clients: Int? = nil, tasks: Int? = nil) {
        self.seed = seed
        let dice = Dice.plan
        let isCalm = dice.chance(50)
        faults = []
        // In a fixed order, so that leaving one out leaves the others as they are.
        for fault in Fault.allCases where dice.chance(400) && !isCalm { faults.insert(fault) }
        let drawn = (clients: 1 + dice.below(4), tasks: 2 + dice.below(10), time: 5_000 + dice.below(60_000))
        faults.subtract(without)
        self.clients = clients ?? drawn.clients
        self.tasks = tasks ?? drawn.tasks
        troubledTime = Int64(drawn.time)
    }

    func has(_ fault: Fault) -> Bool { faults.contains(fault) }

    var text: String {
        "clients \(clients), tasks \(tasks), \(troubledTime) ms, "
            + Fault.allCases.filter(faults.contains).map(\.rawValue).joined(separator: " ")
    }
}
