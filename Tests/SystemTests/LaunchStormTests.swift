import Base
import Core
import Glibc
import TestSupport
import Testing

/// docs/concepts.md "Launches, step by step" under load: many launches, a failing receiver, a killed service, a dead
/// neighbour.
///
/// With `SOAK=1` at full scale: 10,000 launches, 20 kills; 10,000 due launches of the dead neighbour.
@Suite struct LaunchStormTests {
    private static let isSoak = getenv("SOAK").map { String(cString: $0) } == "1"

    // MARK: Storm

    @Test func `Launches survive a failing receiver and kills of the service, each with one identifier`() async throws {
        let (count, kills) = Self.isSoak ? (10_000, 20) : (400, 3)
        let began = ContinuousClock.now
        let record = StormRecord(seed: 1)
        let receiver = try Receiver { record.answer($0) }
        let scene = try await Scene(["--log-level", "warning"], configuration: nil)
        try await scene.launches(to: receiver, ["launchDeadline": 900])
        scene.origin.serve("/t", .text("x"))

        try await withThrowingTaskGroup { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in stride(from: worker, to: count, by: 4) { try await Self.order(number, scene) }
                }
            }
            group.addTask { try await Self.complete(record, scene) }
            group.addTask { try await Self.kill(kills, of: count, record, scene) }
            group.addTask { try await Self.hasten(count, record, scene) }
            try await group.waitForAll()
        }

        let launches = try await Self.launches(scene, "state=completed")
        let told = record.told()
        #expect(launches.count == count && Set(launches).count == count && Set(launches) == Set(told.keys))
        for (launchId, launch) in told {
            #expect(launch.sessions.count == 1 && launch.bodies.count == 1, "\(launchId) changed")
            #expect(launch.accepted > 0, "\(launchId) was never accepted")
            #expect(launch.wronglySigned == 0, "\(launchId)")
        }
        #expect(Set(told.values.flatMap(\.sessions)).count == count, "a session was launched twice")
        let duplicates = told.values.reduce(0) { $0 + $1.accepted - 1 }
        // Only attempts in flight at a kill can be repeated after a response: four at a time.
        #expect(duplicates <= kills * 4)
        for number in 0..<count { try await Self.check("s\(number)", told, scene) }
        let failures = told.values.reduce(0) { $0 + $1.failed }
        let deliveries = told.values.reduce(0) { $0 + $1.accepted + $1.failed }
        #expect(failures > deliveries / 5)
        print(
            "launch storm: \(count) launches, \(kills) kills, \(deliveries) deliveries, \(failures) of them failed, "
                + "\(duplicates) accepted again after a kill, 0 lost, \(ContinuousClock.now - began)")
    }

    /// Creates a session with one download; requests without a response are repeated.
    private static func order(_ number: Int, _ scene: Scene) async throws {
        let session = "/v1/sessions/s\(number)"
        try await persist("session \(number)") { try await scene.service.api.put(session, [:]).status < 300 }
        let task = scene.downloadOf("/t", ["clientTaskId": "one"])
        try await persist("task \(number)") {
            try await scene.service.api.post("\(session)/tasks", task).status < 300
        }
    }

    /// Completes with requests the launches that a response has not completed.
    private static func complete(_ record: StormRecord, _ scene: Scene) async throws {
        while !record.isOver {
            guard let launchId = record.nextToComplete() else {
                try await Task.sleep(for: .milliseconds(20))
                continue
            }
            try await persist("completing \(launchId)") {
                try await scene.service.api.post("/v1/launches/\(launchId)/complete", [:]).status == 200
            }
        }
    }

    /// Kills the service as deliveries arrive, spread over the whole storm.
    private static func kill(_ kills: Int, of count: Int, _ record: StormRecord, _ scene: Scene) async throws {
        for kill in 1...kills {
            try await eventually("deliveries before kill \(kill)", within: .seconds(900)) {
                record.deliveries >= count * kill / (kills + 1)
            }
            try await scene.service.kill()
            try await scene.service.start(within: .seconds(120))
        }
    }

    /// Redelivers launches that would wait for more than 10 s, like an operator of a repaired receiver, until no launch
    /// is open.
    private static func hasten(_ count: Int, _ record: StormRecord, _ scene: Scene) async throws {
        defer { record.end() }
        try await eventually("all launches are completed", within: .seconds(1800)) {
            try await Task.sleep(for: .seconds(1))
            let (now, areAllTold) = (wallMilliseconds(), record.told().count == count)
            guard let open = try? await open(scene) else { return false }
            for launch in open where launch["state"] == "pending" {
                let next = launch["nextAttemptAt"].string.flatMap { Timestamp(rfc3339: $0) }
                guard let next, next.milliseconds - now > 10_000 else { continue }
                _ = try? await scene.service.api.post("/v1/launches/\(launch["launchId"].string ?? "")/redeliver")
            }
            return open.isEmpty && areAllTold
        }
    }

    /// Up to a thousand open launches of each state.
    private static func open(_ scene: Scene) async throws -> [JSON] {
        var found: [JSON] = []
        for state in ["pending", "delivering", "launched", "parked"] {
            let answer = try await scene.service.api.get("/v1/launches?state=\(state)&limit=1000")
            guard answer.status == 200 else { throw DeadlineExceeded("\(answer.text)") }
            found += answer.json["items"].array ?? []
        }
        return found
    }

    /// Repeats a request that a kill may have interrupted until it succeeds.
    private static func persist(_ what: String, _ body: () async throws -> Bool) async throws {
        try await eventually(what, within: .seconds(300)) { (try? await body()) ?? false }
    }

    private static func launches(_ scene: Scene, _ query: String) async throws -> [String] {
        var (found, cursor): ([String], String?) = ([], nil)
        repeat {
            let page = try await scene.api.get(
                "/v1/launches?\(query)&limit=1000" + (cursor.map { "&cursor=\($0)" } ?? ""))
            try #require(page.status == 200, "\(page.text)")
            found += (page.json["items"].array ?? []).compactMap { $0["launchId"].string }
            cursor = page.json["nextCursor"].string
        } while cursor != nil
        return found
    }

    /// The session's log has its one task and its one launch, in that order.
    private static func check(_ session: String, _ told: [String: StormRecord.Launch], _ scene: Scene) async throws {
        let answer = try await scene.service.api.get("/v1/sessions/\(session)/events?after=0")
        try #require(answer.status == 200, "\(answer.text)")
        let events = answer.json["items"].array ?? []
        expectSound(events)
        let last = try #require(events.last)
        #expect(last["type"] == "session.didFinishEvents" && completions(events).count == 1, "\(answer.text)")
        #expect(told[last["data"]["launchId"].string ?? ""]?.sessions == [session], "\(answer.text)")
        #expect(events.filter { $0["type"] == "session.didFinishEvents" }.count == 1, "\(answer.text)")
        #expect(answer.json["acknowledgedSeq"].int == events.count - 1, "\(answer.text)")
    }

    // MARK: A dead neighbour

    @Test func `A dead receiver with many due launches delays no healthy one`() async throws {
        let (crowd, healthy) = (Self.isSoak ? 10_000 : 400, 100)
        let scene = try await Scene(["--log-level", "warning"], configuration: nil)
        scene.origin.serve("/t", .text("x"))
        let dead = try Receiver { _ in .hang }
        try await scene.launches(to: dead)
        let alive = try Receiver { _ in .json(["completed": true]) }
        let made = try await scene.admin.post(
            "/v1/apps", ["identifier": "healthy", "webhook": ["url": .string(alive.url)]])
        let neighbour = scene.service.api.with(key: made.json["apiKey"].string ?? "")

        try await Self.order(crowd, with: scene.service.api, scene)
        try await eventually("all of the crowd is due", within: .seconds(300)) {
            try await scene.service.api.get("/v1/sessions/s\(crowd - 1)").json["launch"]["launchId"].string != nil
        }
        let began = ContinuousClock.now
        try await Self.order(healthy, with: neighbour, scene)
        let deliveries = try await alive.waitForDelivery(count: healthy, within: .seconds(120))
        let took = ContinuousClock.now - began
        #expect(Set(deliveries.compactMap(\.id)).count == healthy)
        // Each request to the dead receiver lasts 15 s, four at a time: its launches alone would take `crowd / 4 * 15`
        // s.
        #expect(took < .seconds(crowd / 4 * 15) / 10, "\(took)")
        let tried = Set(dead.deliveries.compactMap(\.id)).count
        #expect(tried > 0 && tried < crowd / 2, "\(tried)")
        #expect(try await Self.launches(scene, "state=delivering").count <= 4)

        // Half a minute of failures opens the circuit breaker: untried launches wait as well, without a charge.
        let waiting = try await eventually("the breaker opens", within: .seconds(120)) { () -> JSON? in
            let page = try await scene.api.get("/v1/launches?state=pending&limit=1000").json["items"].array ?? []
            let untried = page.filter { $0["attempts"].array?.isEmpty == true }
            let soonest = untried.compactMap { $0["nextAttemptAt"].string.flatMap { Timestamp(rfc3339: $0) } }.min()
            return soonest.map { $0.milliseconds - wallMilliseconds() > 5000 } == true ? untried.first : .none
        }
        #expect(waiting["state"] == "pending")
        let webhook = try await scene.api.get("/v1/app").json["webhook"]
        #expect(webhook["state"] == "enabled", "\(webhook)")
        print(
            "dead neighbour: \(crowd) due launches of it, \(healthy) healthy ones ordered and delivered in \(took), "
                + "\(tried) of the dead tried meanwhile")
    }

    /// Creates sessions with one download each.
    private static func order(_ count: Int, with client: APIClient, _ scene: Scene) async throws {
        try await withThrowingTaskGroup { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in stride(from: worker, to: count, by: 4) {
                        expect(try await client.put("/v1/sessions/s\(number)", [:]), 201)
                        expect(try await client.post("/v1/sessions/s\(number)/tasks", scene.downloadOf("/t")), 201)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}

/// A receiver's response to each launch, and its pending completions.
private final class StormRecord: Sendable {
    struct Launch {
        var sessions: Set<String> = []
        var bodies: Set<[UInt8]> = []
        var accepted = 0
        var failed = 0
        var wronglySigned = 0
    }

    private struct State {
        var launches: [String: Launch] = [:]
        var toComplete: [String] = []
        var random: SeededRandom
        var deliveries = 0
        var isOver = false
    }

    private let state: Locked<State>

    init(seed: UInt64) { state = Locked(State(random: SeededRandom(seed: seed))) }

    var deliveries: Int { state.withLock(\.deliveries) }
    var isOver: Bool { state.withLock(\.isOver) }
    func end() { state.withLock { $0.isOver = true } }
    func told() -> [String: Launch] { state.withLock(\.launches) }
    func nextToComplete() -> String? { state.withLock { $0.toComplete.popLast() } }

    /// Fails three of ten; completes two of three of the others in the response.
    func answer(_ delivery: Receiver.Delivery) -> Receiver.Answer {
        let isSigned = delivery.isSigned(with: devSecret)
        let session = delivery.json["data"]["sessionIdentifier"].string ?? ""
        let launchId = delivery.id ?? ""
        return state.withLock { state in
            state.deliveries += 1
            let draw = Int.random(in: 0..<100, using: &state.random)
            var launch = state.launches[launchId] ?? Launch()
            launch.sessions.insert(session)
            launch.bodies.insert(delivery.body)
            if !isSigned { launch.wronglySigned += 1 }
            if draw < 30 { launch.failed += 1 } else { launch.accepted += 1 }
            state.launches[launchId] = launch
            switch draw {
            case 0..<10: return .status(500)
            case 10..<20: return .status(503)
            case 20..<30: return .close
            case 30..<54:
                state.toComplete.append(launchId)
                return .launched
            default: return .json(["completed": true])
            }
        }
    }
}
