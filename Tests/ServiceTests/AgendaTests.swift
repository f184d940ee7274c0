import Core
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

final class AgendaTests {
    private let now = Timestamp(milliseconds: 1_800_000_000_000)
    private var agenda = Agenda(maximumTransfers: 8, maximumTransfersPerHost: 4)
    private var conditions = Conditions()

    private func lane(
        _ id: Int64, app: Int64 = 1, origin: String = "https://a.example:443", queued: Int64 = 1,
        _ conditions: LaneConditions = [], _ patience: Conditions.Patience? = nil
    ) -> QueuedLane {
        QueuedLane(
            id: id, app: AppID(app), session: SessionID(app), origin: origin, queued: queued, limitPerHost: 2,
            isBackground: false, conditions: conditions, patience: patience, priority: 0.5)
    }

    private func partway() -> QueueCursor {
        var cursor = QueueCursor()
        cursor.lastApp = 7
        return cursor
    }

    private func begin(at time: Timestamp? = nil, _ room: Agenda.Room = .anything) -> QueueCursor? {
        agenda.commitBegins()
        return agenda.beginRound(
            CurrentConditions.Snapshot(conditions: conditions, load: nil, now: time ?? now), room)
    }

    /// One round of the scheduler over lanes that fit into one window.
    @discardableResult
    private func round(
        over lanes: [QueuedLane] = [], suspect: (task: TaskID, lane: QueuedLane)? = nil, at time: Timestamp? = nil
    ) throws -> [Int64] {
        let cursor = try #require(begin(at: time))
        let open = lanes.filter { agenda.room(at: $0.origin, for: $0.app) > 0 && agenda.mayStart($0) }
        var started: [Int64] = []
        var claimed: [TaskID] = []
        switch agenda.pick(Queue(lanes: open, suspect: suspect)) {
        case .tasks(let grants): for (lane, count) in grants { started += Array(repeating: lane, count: count) }
        case .alone(let task, let lane): (started, claimed) = ([lane.id], [task])
        }
        if claimed.isEmpty { claimed = started.indices.map { TaskID(Int64($0) + 100) } }
        let ended = agenda.endRound(at: cursor, isWhole: true, claimed: claimed)
        let found = try #require(ended)
        for id in started { agenda.began(in: try #require(found.lanes[id])) }
        return started
    }

    private func takeDue(at time: Timestamp) -> Bool { agenda.takeDue(at: time) }

    private func asksDueTime(isIdle: Bool, monotonic time: Int64) -> Bool {
        agenda.asksDueTime(isIdle: isIdle, monotonic: time)
    }

    @discardableResult
    private func endWaits(at time: Timestamp) -> TaskID? { agenda.endWaits(at: time) }

    // MARK: Scans of the queue

    @Test
    func `A completely scanned queue is scanned again after a change`() throws {
        #expect(agenda.hasWork(.anything, at: now))
        try round()
        #expect(agenda.look == .nothing && !agenda.hasWork(.anything, at: now))
        agenda.lookAgain()
        #expect(agenda.hasWork(.anything, at: now))
    }

    @Test
    func `A change during a scan causes one more complete scan`() throws {
        _ = begin()
        agenda.lookAgain()
        _ = agenda.endRound(at: QueueCursor(), isWhole: true, claimed: [])
        #expect(agenda.look == .all)
        try round()
        #expect(agenda.look == .nothing)
    }

    @Test
    func `A change between two parts of a scan causes one more scan`() throws {
        _ = begin()
        _ = agenda.endRound(at: partway(), isWhole: false, claimed: [])
        #expect(agenda.look == .rest)
        agenda.lookAgain()
        #expect(begin() == partway())
        _ = agenda.endRound(at: QueueCursor(), isWhole: true, claimed: [])
        #expect(agenda.look == .all)
    }

    @Test
    func `A scan continues while all free slots were used, and after a failed commit`() {
        _ = begin()
        _ = agenda.endRound(at: QueueCursor(), isWhole: true, claimed: (1...8).map { TaskID($0) })
        #expect(agenda.look == .rest)
        #expect(begin() == QueueCursor())
        // The round's commit failed: the next round begins.
        #expect(agenda.wantsTasks(.anything))
        #expect(begin() == QueueCursor())
    }

    // MARK: Slots

    @Test
    func `Claims respect the limits of the service, the host and the session`() throws {
        let lanes = [lane(1, queued: 9), lane(2, app: 2, queued: 9), lane(3, app: 3, queued: 9)]
        #expect(try round(over: lanes).count == 4)
        #expect(agenda.room(at: "https://a.example:443", for: AppID(4)) == 0)
        agenda.lookAgain()
        #expect(try round(over: lanes + [lane(4, app: 4, origin: "https://b.example:443", queued: 9)]) == [4, 4])
        #expect(agenda.freeSlots(.anything) == 2)
        agenda.ended(TaskID(1), in: 4, at: now)
        #expect(agenda.freeSlots(.anything) == 3 && agenda.look == .all)
    }

    @Test
    func `Without a free slot the queue is scanned now and then, for apps that wait`() throws {
        agenda = Agenda(maximumTransfers: 2, maximumTransfersPerHost: 4)
        try round(over: [lane(1, queued: 9)])
        #expect(agenda.freeSlots(.anything) == 0)
        let other = lane(2, app: 2, queued: 9)
        let candidates = (0..<2).map {
            Preemption.Candidate(task: $0, app: 1, isResumable: false, startedAt: now + .seconds($0))
        }
        var chosen: [Int64: [Int64]] = [:]
        for second in [0, 1, 5, 9, 10, 11] as [Int64] {
            let time = now + .seconds(second)
            agenda.lookAgain()
            endWaits(at: time)
            guard agenda.wantsTasks(.anything) else { continue }
            #expect(try round(over: [lane(1, queued: 7), other], at: time) == [])
            chosen[second] = agenda.victims(among: candidates, at: time)
        }
        #expect(chosen == [0: [], 10: [1]])
        #expect(agenda.next == now + .seconds(20))
        #expect(!agenda.wantsTasks(.nothing))
    }

    @Test
    func `Apps alternate`() throws {
        agenda = Agenda(maximumTransfers: 1, maximumTransfersPerHost: 4)
        var order: [Int64] = []
        for _ in 0..<4 {
            order += try round(over: [lane(1, queued: 9), lane(2, app: 2, queued: 9)])
            agenda.ended(TaskID(1), in: try #require(order.last), at: now)
        }
        #expect(Set(order.prefix(2)) == [1, 2] && Set(order.suffix(2)) == [1, 2])
    }

    @Test
    func `Without room for content one transfer runs, above the floor`() throws {
        #expect(agenda.freeSlots(.oneTransfer) == 1 && agenda.freeSlots(.nothing) == 0)
        #expect(begin(at: now, .nothing) == nil)
        try round(over: [lane(1)])
        #expect(agenda.freeSlots(.oneTransfer) == 0)
    }

    @Test
    func `Deletions count as transfers and use a quarter of the slots`() throws {
        let deletion = FairShare.Lane(
            app: 1, session: 1, host: "https://a.example:443", priority: 0, ready: 0, running: 1, limit: 1)
        for exchange in 1...2 as ClosedRange<UInt64> {
            #expect(agenda.takesDeletion(.anything))
            agenda.began(deletion: ExchangeID(rawValue: exchange), deletion)
        }
        #expect(!agenda.takesDeletion(.anything))
        #expect(agenda.freeSlots(.anything) == 6)
        #expect(try round(over: [lane(1, queued: 9), lane(2, app: 2, queued: 9)]).count == 2)
        agenda.ended(deletion: ExchangeID(rawValue: 9))
        #expect(agenda.look == .nothing)
        agenda.ended(deletion: ExchangeID(rawValue: 1))
        #expect(agenda.look == .all && agenda.takesDeletion(.anything))
    }

    private func begin(connection number: UInt64, limit: Int) -> Bool {
        agenda.begin(connection: ExchangeID(rawValue: number), place(limit: limit), .anything, at: now)
    }

    private func place(limit: Int) -> FairShare.Lane {
        FairShare.Lane(
            app: 1, session: 1, host: "https://a.example:443", priority: 0, ready: 0, running: 1, limit: limit)
    }

    private func pass(connection number: UInt64, to next: UInt64) -> Bool {
        agenda.pass(connection: ExchangeID(rawValue: number), to: ExchangeID(rawValue: next), at: now)
    }

    @Test
    func `Connections of a download count for their host and session, and begin when no task could`() throws {
        #expect(!begin(connection: 1, limit: 2), "the queue was not looked at")
        try round(over: [lane(1)])
        #expect(begin(connection: 1, limit: 2))
        #expect(!begin(connection: 2, limit: 2), "the session may have two at the host")
        #expect(agenda.freeSlots(.anything) == 6)
        agenda.lookAgain()
        #expect(try round(over: [lane(1), lane(2, app: 2, queued: 9)]) == [2, 2])
        #expect(!pass(connection: 1, to: 3), "the host is full")
        agenda.ended(connection: ExchangeID(rawValue: 1))
        #expect(agenda.look == .all)
        #expect(try round(over: [lane(1, queued: 9)]) == [1])
    }

    private func grant(_ count: Int) {
        let claims = agenda.placeClaims
        agenda.places?.note(zip(claims, [count]))
    }

    @Test
    func `With many nodes a connection begins after its slot is stored, and releases it`() throws {
        agenda = Agenda(maximumTransfers: 8, maximumTransfersPerHost: 4, isShared: true)
        try round()
        #expect(!agenda.claimsPlaces)
        #expect(!begin(connection: 1, limit: 3) && !begin(connection: 2, limit: 3))
        #expect(agenda.claimsPlaces)
        let claims = agenda.placeClaims
        #expect(claims.map(\.wanted) == [2] && claims.map(\.used) == [0] && claims.map(\.limit) == [3])
        grant(1)
        #expect(begin(connection: 1, limit: 3) && !begin(connection: 2, limit: 3))
        grant(0)
        #expect(!begin(connection: 2, limit: 3))
        #expect(!agenda.claimsPlaces, "it was refused: nothing has changed since")
        agenda.ended(connection: ExchangeID(rawValue: 1))
        #expect(agenda.placeClaims.map(\.used) == [0] && agenda.placeClaims.map(\.wanted) == [0])
        try round()
        #expect(!begin(connection: 2, limit: 3))
        grant(2)
        agenda.places?.drop()
        #expect(!begin(connection: 2, limit: 3), "what was not used is given up")
        #expect(agenda.placeClaims.map(\.wanted) == [1] && agenda.placeClaims.map(\.used) == [0])
    }

    @Test
    func `A task uses its own slot elsewhere once no slot is free there, and not while a task could begin`() throws {
        func beginInOwnSlot() -> Bool {
            agenda.beginInOwnSlot(connection: ExchangeID(rawValue: 9), place(limit: 1), .anything, at: now)
        }
        #expect(!beginInOwnSlot(), "the queue has not been read")
        try round()
        #expect(begin(connection: 1, limit: 1) && !begin(connection: 2, limit: 1))
        #expect(beginInOwnSlot())
        agenda.take(OriginPause("https://a.example:443", app: 1, retryAfter: .seconds(5), at: now), at: now)
        #expect(!beginInOwnSlot())

        agenda = Agenda(maximumTransfers: 8, maximumTransfersPerHost: 4, isShared: true)
        try round()
        #expect(!begin(connection: 1, limit: 1) && !beginInOwnSlot(), "the store has not been asked")
        grant(0)
        #expect(!begin(connection: 1, limit: 1) && beginInOwnSlot())
        agenda.ended(connection: ExchangeID(rawValue: 9))
        try round()
        agenda.began(deletion: ExchangeID(rawValue: 8), place(limit: 1))
        #expect(!begin(connection: 1, limit: 1) && beginInOwnSlot(), "no slot is left here, so the store is not asked")
    }

    @Test
    func `A connection's slot passes to the next one while no task may be waiting for it`() throws {
        try round()
        #expect(begin(connection: 1, limit: 3))
        #expect(pass(connection: 1, to: 2))
        #expect(agenda.connections.keys.map(\.rawValue) == [2])
        agenda.take(OriginPause("https://a.example:443", app: 1, retryAfter: .seconds(5), at: now), at: now)
        #expect(!pass(connection: 2, to: 3) && !begin(connection: 4, limit: 3))
    }

    @Test
    func `A draining node begins no transfer`() {
        agenda.drain()
        #expect(!agenda.hasWork(.anything, at: now) && !agenda.takesDeletion(.anything))
        #expect(begin() == nil)
    }

    // MARK: Due times

    @Test
    func `A due time causes a commit and a scan of the queue`() throws {
        try round()
        agenda.note(due: now + .seconds(5))
        #expect(agenda.next == now + .seconds(5))
        #expect(!takeDue(at: now))
        agenda.wake(at: now + .seconds(2))
        agenda.wake(at: now + .seconds(3))
        #expect(agenda.next == now + .seconds(2))
        #expect(!agenda.hasWork(.nothing, at: now) && agenda.hasWork(.nothing, at: now + .seconds(2)))
        #expect(takeDue(at: now + .seconds(2)))
        #expect(agenda.next == nil && agenda.look == .all)
        #expect(agenda.hasWork(.nothing, at: now))
        agenda.commitBegins()
        #expect(!agenda.hasWork(.nothing, at: now))
    }

    @Test
    func `The due time is queried after each commit, rarely while there is work`() {
        #expect(asksDueTime(isIdle: true, monotonic: 1000))
        #expect(!asksDueTime(isIdle: true, monotonic: 2000))
        agenda.commitBegins()
        #expect(asksDueTime(isIdle: false, monotonic: 2000))
        agenda.commitBegins()
        #expect(!asksDueTime(isIdle: false, monotonic: 2049))
        #expect(asksDueTime(isIdle: false, monotonic: 2050))
        agenda.note(due: now)
        _ = takeDue(at: now)
        #expect(asksDueTime(isIdle: true, monotonic: 2051))
    }

    // MARK: Holds

    @Test
    func `A lane that waits for conditions is scanned when they may be waived`() throws {
        conditions.power.external = false
        let patience = Conditions.Patience(began: now, resourceTimeout: .seconds(400))
        let waiting = lane(1, .discretionary, patience)
        #expect(try round(over: [waiting]).isEmpty)
        #expect(agenda.next == now + .seconds(100))
        #expect(endWaits(at: now + .seconds(99)) == nil && agenda.look == .nothing)
        #expect(endWaits(at: now + .seconds(100)) == nil && agenda.look == .all)
        #expect(agenda.next == nil)
        #expect(try round(over: [waiting], at: now + .seconds(100)) == [1])
    }

    @Test
    func `An origin that requested a pause gets no requests, for a minute from other apps`() throws {
        agenda.take(OriginPause("https://a.example:443", app: 1, retryAfter: .seconds(90), at: now), at: now)
        let lanes = [lane(1), lane(2, app: 2), lane(3, app: 1, origin: "https://b.example:443")]
        #expect(try round(over: lanes) == [3])
        #expect(agenda.next == now + .seconds(60))
        #expect(agenda.pauseEnd(of: lanes[0].origin, app: AppID(1), at: now) == now + .seconds(90))
        endWaits(at: now + .seconds(60))
        #expect(agenda.look == .all)
        #expect(try round(over: lanes, at: now + .seconds(60)).contains(2))
        #expect(agenda.next == now + .seconds(90))
        endWaits(at: now + .seconds(90))
        #expect(try round(over: lanes, at: now + .seconds(90)).contains(1))
        #expect(agenda.next == nil)
    }

    // MARK: Tasks that run alone

    @Test
    func `A suspect waits until no transfer runs, and then runs alone`() throws {
        let suspect = (task: TaskID(9), lane: lane(9, origin: "https://c.example:443"))
        try round(over: [lane(1)])
        agenda.lookAgain()
        let cursor = try #require(begin())
        guard case .tasks(let grants) = agenda.pick(Queue(lanes: [lane(2, app: 2)], suspect: suspect)) else {
            Issue.record("the suspect began beside others")
            return
        }
        #expect(grants.isEmpty)
        let needsSolitude = agenda.endRound(at: cursor, isWhole: true, claimed: [])?.needsSolitude
        #expect(needsSolitude == true)
        agenda.ended(TaskID(1), in: 1, at: now)
        #expect(try round(over: [lane(2, app: 2)], suspect: suspect) == [9])
        #expect(agenda.soloEnd == now + Quarantine.trial)
        agenda.lookAgain()
        #expect(begin() == nil && !agenda.takesDeletion(.anything))
    }

    @Test
    func `After a suspect the other tasks run for as long as it did`() throws {
        let suspect = (task: TaskID(9), lane: lane(9, origin: "https://c.example:443"))
        try round(suspect: suspect)
        let end = now + .seconds(4)
        agenda.ended(TaskID(9), in: 9, at: end)
        #expect(agenda.soloEnd == nil)
        #expect(try round(over: [lane(1)], suspect: suspect, at: end) == [1])
        #expect(agenda.next == end + .seconds(4))
        agenda.ended(TaskID(1), in: 1, at: end)
        #expect(try round(suspect: suspect, at: end + .seconds(4)) == [9])
    }

    @Test
    func `A suspect that has run long enough is cleared, and other tasks start`() throws {
        try round(suspect: (TaskID(9), lane(9)))
        #expect(agenda.next == now + Quarantine.trial)
        #expect(endWaits(at: now + .seconds(1)) == nil)
        #expect(endWaits(at: now + Quarantine.trial) == TaskID(9))
        #expect(agenda.look == .all)
        #expect(try round(over: [lane(1)], at: now + Quarantine.trial) == [1])
    }
}
