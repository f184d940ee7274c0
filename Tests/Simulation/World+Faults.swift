import CSimulation
import Files
import Glibc

/// The faults of the machines, and of the server of the nodes' store.
extension World {
    func startTrouble() {
        let dice = Dice.plan
        if plan.has(.kills) || plan.has(.powerCuts) || plan.has(.fatalSignals) { planCrashes() }
        if plan.has(.writeErrors) {
            csim_set_fault(csim_write, 200 + Int32(dice.below(3000)), dice.chance(500) ? EIO : ENOSPC)
        }
        if plan.has(.syncErrors) { csim_set_fault(csim_sync, 200 + Int32(dice.below(3000)), EIO) }
        if plan.has(.readErrors) { csim_set_fault(csim_read, Int32(Dice.reads.pick([500, 5000, 30_000])), EIO) }
        if plan.has(.delays) { csim_set_delays(200, Int64(1 + dice.below(80)) * 1_000_000) }
        if plan.has(.names) { network.setNamesFail(true) }
        if plan.has(.fullDisk) { fillDisk() }
        if plan.has(.clockJumps) { jumpClock() }
        if plan.has(.storeErrors) { objects.refuseSometimes() }
        if plan.has(.pauses) { pauseMachines() }
        if plan.has(.losses) {
            csim_set_losses(Int32(Dice.database.pick([0, 1, 5, 30])))
            restartServer()
        }
    }

    func endTrouble() {
        trace.note("the faults stop")
        isTroubled = false
        network.isCalm = true
        // A task whose date was stored before the clock was set back would wait for the whole difference.
        csim_shift_wall_clock(Int64(furthestOffset - clockOffset) * 1_000_000_000)
        csim_set_fault(csim_write, 0, 0)
        csim_set_fault(csim_sync, 0, 0)
        csim_set_fault(csim_read, 0, 0)
        csim_set_delays(0, 0)
        csim_set_full(0)
        network.setNamesFail(false)
        csim_set_losses(0)
        for life in lives where csim_is_paused(life.machine) != 0 {
            csim_set_paused(life.machine, 0)
            trace.note("machine \(life.machine) continues")
        }
    }

    /// Calls `body` at a random time while the faults last, and again each time that `body` calls its argument.
    private func repeatedly(
        after pause: ClosedRange<Double>, _ dice: Dice, _ body: @escaping (_ next: @escaping () -> Void) -> Void
    ) {
        simulator.after(dice.between(pause.lowerBound, pause.upperBound)) { [self] in
            guard isTroubled else { return }
            body { [self] in repeatedly(after: pause, dice, body) }
        }
    }

    /// Begins and ends a state at random times.
    private func alternate(
        after pause: ClosedRange<Double>, for length: ClosedRange<Double>, _ dice: Dice, begin: @escaping () -> Void,
        end: @escaping () -> Void
    ) {
        repeatedly(after: pause, dice) { [simulator] next in
            begin()
            simulator.after(dice.between(length.lowerBound, length.upperBound)) {
                end()
                next()
            }
        }
    }

    private func planCrashes() {
        let dice = Dice.plan
        repeatedly(after: 200...15_000, dice) { [self] next in
            let isPowerCut = plan.has(.powerCuts) && (dice.chance(600) || !plan.has(.kills) && !plan.has(.fatalSignals))
            let count = dice.chance(200) ? 0 : 1 + dice.below(80)
            let machine = 1 + Int32(lives.count > 1 ? Dice.database.below(lives.count) : 0)
            trace.note("crash planned: \(isPowerCut ? "power cut" : "kill") after \(count) calls")
            csim_plan_crash(machine, isPowerCut ? csim_power_cut : csim_kill, Int64(count))
            next()
        }
    }

    /// Crashes the program soon after its request, with a fatal signal.
    func poison(_ machine: Int32) {
        trace.note("machine \(machine) is poisoned")
        trace.met("poison")
        poisoned.insert(machine)
        csim_plan_crash(machine, csim_kill, Int64(Dice.extras.below(40)))
    }

    private func pauseMachines() {
        let dice = Dice.database
        repeatedly(after: 500...20_000, dice) { [self] next in
            let machine = 1 + Int32(dice.below(lives.count))
            csim_set_paused(machine, 1)
            pausedAt[machine] = simulator.now
            trace.note("machine \(machine) pauses")
            trace.met("machine paused")
            if dice.chance(300), lives.count + 1 < csim_machines {
                trace.note("another machine replaces machine \(machine)")
                trace.met("machine replaced")
                addMachine(node: lives[Int(machine) - 1].node)
            }
            simulator.after(dice.pick([dice.between(10, 5000), dice.between(5000, 60_000)])) { [self] in
                csim_set_paused(machine, 0)
                trace.note("machine \(machine) continues")
                next()
            }
        }
    }

    private func restartServer() {
        alternate(after: 1000...30_000, for: 10...20_000, Dice.database) { [trace] in
            trace.note("the server of the store restarts")
            trace.met("store restarted")
            csim_restart_server(1)
        } end: { [trace] in
            csim_restart_server(0)
            trace.note("the server of the store is back")
        }
    }

    private func fillDisk() {
        alternate(after: 500...15_000, for: 100...15_000, Dice.plan) { [trace] in
            trace.note("the disk is full")
            trace.met("disk full")
            csim_set_full(1)
        } end: { [trace] in
            csim_set_full(0)
            trace.note("the disk has room")
        }
    }

    private func jumpClock() {
        let dice = Dice.plan
        repeatedly(after: 500...20_000, dice) { [self] next in
            // A launch is attempted for four days. A body of no task expires before, and a task after seven.
            let isLong = Dice.extras.chance(30) && !plan.has(.bodies) && furthestOffset < 86_400
            let seconds = isLong ? 5 * 86_400 : dice.pick([-3600, -60, -1, 1, 60, 3600])
            trace.note("the clock jumps by \(seconds) s")
            trace.met("clock jump")
            csim_shift_wall_clock(Int64(seconds) * 1_000_000_000)
            clockOffset += seconds
            furthestOffset = max(furthestOffset, clockOffset)
            next()
        }
    }

    /// The bytes that the handler of a fatal signal writes.
    func leaveCrashMarker(in data: String) {
        let file = open("\(data)/\(DataFolder.crashMark)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0 else { return }
        _ = write(file, "11\n", 3)
        close(file)
        trace.note("a fatal signal")
        trace.met("crash marker")
    }
}
