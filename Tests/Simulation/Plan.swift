import CSimulation

/// The kind of run of a seed: its faults and amounts.
struct Plan {
    /// A kind of fault. Each run has a subset.
    enum Fault: String, CaseIterable {
        // Of origins.
        case cuts, resets, stalls, statuses, versions, ranges, redirects, frames, validators, slowness, challenges
        // Of the network.
        case refusals, names, hangs
        // Of receivers.
        case receivers
        // Of the machine.
        case kills, powerCuts, fatalSignals, fullDisk, writeErrors, syncErrors, readErrors, clockJumps, delays
        // Of clients.
        case commands, sessions, retries, attachments, bodies, apps
        // Not faults, but other work: tasks with cache policies for the same resources; contents in a bucket, and objects
        // as destinations.
        case sharing, objects
        // Versions of sets.
        case sets
        // Of the store of objects.
        case storeErrors
        // Not a fault: up to three nodes with their store on a server. Lost connections to it; nodes that pause.
        case nodes, losses, pauses
        // Resources whose transfer crashes the program. Not faults: background refresh, and redelivered launches; long
        // contents that are read while they arrive; origins with resumable uploads.
        case poisons, fetches, longReads, resumables

        /// Kinds that are drawn from a stream of their own, so that the runs of seeds without them did not change.
        fileprivate static let ofStores: [Fault] = [.sharing, .objects, .storeErrors, .sets]
        fileprivate static let ofNodes: [Fault] = [.nodes, .losses, .pauses]
        fileprivate static let ofExtras: [Fault] = [.poisons, .fetches, .longReads, .resumables]
        fileprivate static let ofOthers = allCases.filter {
            $0 != .readErrors && !ofStores.contains($0) && !ofNodes.contains($0) && !ofExtras.contains($0)
        }
    }

    var seed: UInt64
    var faults: Set<Fault>
    var clients: Int
    /// Tasks that each client creates.
    var tasks: Int
    /// Milliseconds until the faults stop.
    var troubledTime: Int64
    /// Each node looks for the others' commits three times a second.
    var maximumSteps: Int { 1_000_000 * (1 + 2 * Int(machines)) }
    /// The number of machines that run the program at first: one, or as many as there are nodes.
    private(set) var machines: Int32
    /// Bytes that the cache keeps.
    var cacheCapacity: Int64

    /// Draws a plan. A narrower one can be given to shrink a run.
    init(seed: UInt64, with: Set<Fault> = [], without: Set<Fault> = [], clients: Int? = nil, tasks: Int? = nil) {
        self.seed = seed
        let dice = Dice.plan
        let isCalm = dice.chance(50)
        faults = []
        // In a fixed order, so that omitting a fault does not change the others.
        for fault in Fault.ofOthers where dice.chance(400) && !isCalm { faults.insert(fault) }
        let stores = Dice.stores
        for fault in Fault.ofStores where stores.chance(400) { faults.insert(fault) }
        if Dice.database.chance(250) || with.contains(.nodes) { faults.formUnion([.nodes, .objects]) }
        machines = faults.contains(.nodes) ? Int32(1 + Dice.database.below(3)) : 1
        for fault in [Fault.losses, .pauses] where Dice.database.chance(500) && faults.contains(.nodes) && !isCalm {
            faults.insert(fault)
        }
        if Dice.reads.chance(250), !isCalm { faults.insert(.readErrors) }
        if Dice.extras.chance(200), !isCalm { faults.insert(.poisons) }
        if Dice.extras.chance(400) { faults.insert(.fetches) }
        if Dice.extras.chance(400) { faults.insert(.resumables) }
        if Dice.extras.chance(100), faults.contains(.objects) { faults.insert(.longReads) }
        if isCalm || !faults.contains(.objects) { faults.remove(.storeErrors) }
        cacheCapacity = Int64(stores.pick([0, 400_000, 1 << 30]))
        let drawn = (clients: 1 + dice.below(4), tasks: 2 + dice.below(10), time: 5_000 + dice.below(60_000))
        faults.formUnion(with)
        faults.subtract(without)
        // Nodes share a store only with contents in a bucket.
        if !faults.contains(.objects) { faults.subtract([.nodes, .losses, .pauses, .storeErrors]) }
        if !faults.contains(.nodes) { machines = 1 }
        self.clients = clients ?? drawn.clients
        self.tasks = tasks ?? drawn.tasks
        // Nodes take over from others after half a minute, and hear of the crash of these when they return.
        troubledTime = Int64(drawn.time) + (faults.isSuperset(of: [.nodes, .poisons]) ? 120_000 : 0)
    }

    func has(_ fault: Fault) -> Bool { faults.contains(fault) }

    /// Whether nothing misbehaves, clients included.
    var isCalm: Bool { faults.isSubset(of: [.sharing, .objects, .sets, .nodes, .fetches, .longReads, .resumables]) }

    var text: String {
        "clients \(clients), tasks \(tasks), \(troubledTime) ms, "
            + Fault.allCases.filter(faults.contains).map(\.rawValue).joined(separator: " ")
    }
}
