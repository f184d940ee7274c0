import Base
import Core
import Files
import Foundation
import SQL
import Store
import TestSupport
import Testing
import TransferEngine

@testable import Service
@testable import Transfers

extension Scheduler {
    /// Fills the cache of sessions.
    fileprivate func rememberManySessions() {
        for number in 0..<4096 as Range<Int64> {
            cache.sessions[SessionID(1_000_000 + number)] = KnownSession(
                configuration: SessionConfiguration(), app: "a", identifier: "\(number)")
        }
    }

    fileprivate func isKnown(_ session: SessionID) -> Bool { cache.sessions[session] != nil }
}

/// A node's cache of sessions, and its reports about other nodes.
struct SharedServiceTests {
    @Test func `A session with transfers stays cached with its limits, however many sessions there are`() async throws {
        let stage = try await ServiceStage.start()
        let gate = Gate()
        stage.origin.serve("/held", .generated(seed: 1, length: 1000), always: [.holdBody(after: 10, gate)])
        let session = try await stage.session { $0.bandwidthLimit = 100_000 }
        let other = try await stage.session("other")
        let task = try await stage.create(stage.order("/held"), in: session)[0]
        try await eventually("it is in flight") { gate.waiting == 1 }
        let scheduler = stage.service.scheduler
        await scheduler.rememberManySessions()
        _ = try await scheduler.known(other.id)
        #expect(await scheduler.isLimited(session.id))
        #expect(await !scheduler.isKnown(SessionID(1_000_000)))
        gate.open()
        _ = try await stage.completed(task)
    }

    @Test func `A change of a session by another node applies to the next task`() async throws {
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        let scheduler = stage.service.scheduler
        #expect(try await scheduler.known(session.id).configuration.bandwidthLimit == nil)
        let changed = try await stage.service.store.sessions.change(
            session.id, description: nil, bandwidthLimit: 7, ifRevision: nil)
        #expect(try await scheduler.known(session.id, revision: session.revision).configuration.bandwidthLimit == nil)
        #expect(try await scheduler.known(session.id, revision: changed.revision).configuration.bandwidthLimit == 7)
    }

    @Test func `Other nodes are named as the reason of a wait only if they have no slot`() async throws {
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        var task = try await stage.create(stage.order("/a", suspended: true), in: session)[0]
        task.life = .running(.queued, deadline: stage.service.clock.now + .seconds(60))
        func note(running: Int) {
            var profile = NodeProfile()
            (profile.transfersRunning, profile.maximumTransfers) = (running, 5)
            stage.service.nodes.note(["a", "b"].map { NodeRecord(id: $0, profile: profile) }, own: "a")
        }
        note(running: 1)
        #expect(stage.service.waitingReasons(of: task, in: session).isEmpty)
        note(running: 5)
        let reasons = stage.service.waitingReasons(of: task, in: session)
        #expect(reasons.map(\.kind) == [.capacity] && reasons[0].detail.contains("limit of all nodes"))
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `A version that a reader of another node has open stays`() async throws {
        try await ServiceStage.run { stage in
            let service = stage.service
            var change = SetChange()
            change.keep = 0
            change.grace = 0
            let set = try await service.putSet("m", of: stage.app, change, ifRevision: nil).set
            for name in ["1", "2"] { stage.origin.serve("/\(name)", .text(name)) }
            func publish(_ name: String) async throws -> SetVersionID {
                let version = try await stage.version(name, of: set)
                try await eventually("\(name) is current") {
                    try await service.set("m", of: stage.app).current?.id == version
                }
                return version
            }
            let first = try await publish("1")
            var profile = NodeProfile()
            profile.openVersions = [first.rawValue]
            service.nodes.note(["a", "b"].map { NodeRecord(id: $0, profile: profile) }, own: "a")
            _ = try await publish("2")
            try await eventually("the set is retired, and due later") {
                let due = try await service.store.sets.nextDue()
                return due.map { $0 > service.clock.now + .seconds(2) } ?? false
            }
            #expect(try await service.version("1", of: set.id).id == first)

            let hold = service.setReaders.hold(first)
            #expect(try await service.nodeRecords().first?.profile.openVersions == [first.rawValue])
            withExtendedLifetime(hold) {}
        }
    }

    @Test(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
    func `Every loop waits for a server that fails during the start`() async throws {
        let home = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: home.server.port)
        let folder = TemporaryFolder()
        let service = try await node(
            in: folder, home.connection.replacing(":\(home.server.port)/", with: ":\(proxy.port)/"))
        let orphan = folder.file("data/partial/77")
        try Data([1]).write(to: URL(filePath: orphan))
        proxy.refuse(true)
        proxy.cut()
        let hasEnded = Locked(false)
        let loops = Task {
            defer { hasEnded.withLock { $0 = true } }
            try await service.run()
        }
        try await stays("it runs", for: .seconds(1)) { !hasEnded.withLock { $0 } }
        #expect(readFile(orphan) != nil)
        proxy.refuse(false)
        try await eventually("the house is kept") { readFile(orphan) == nil }
        #expect(!hasEnded.withLock { $0 })
        loops.cancel()
        await service.drain(within: .seconds(5))
        service.close()
    }

    /// A service whose loops do not run, as a node of a shared store.
    private func node(in folder: TemporaryFolder, _ connection: String) async throws -> Service {
        folder.makeFolder("data")
        let settings = ServiceSettings(
            dataFolder: folder.file("data"), version: "1", egress: EgressPolicy(allowed: ServiceStage.loopback))
        let service = try Service(
            settings: settings, store: .server(PostgreSQLServer(connection), node: "early"),
            sealer: Sealer(masterKey: [UInt8](repeating: 3, count: 32)), transferThreads: 1, clock: .system, log: .none,
            metrics: Metrics(), onFatalError: { preconditionFailure("\($0)") })
        try await service.prepare()
        return service
    }

    @Test(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
    func `A partial file is removed once the store knows that its task is at another node`() async throws {
        let (home, folder) = (try await SharedPostgreSQL.database(), TemporaryFolder())
        let service = try await node(in: folder, home.connection)
        let session = try await service.openSession(
            "s", app: try await ServiceStage.app("app", of: service), configuration: SessionConfiguration(),
            description: nil, onlyCreates: false, recording: nil
        ).session
        let request = TransferRequest(url: "http://127.0.0.1:1/a", method: "GET")
        let specification = TaskSpecification(kind: .download, request: request)
        for _ in 1...2 {
            let order = TaskOrder(specification: specification, isSuspended: true, body: nil)
            _ = try await service.createTasks([order], in: session, recording: nil)
        }
        func exists(_ task: Int) -> Bool { fileLength(folder.file("data/partial/\(task)")) != nil }
        for task in 1...2 { folder.write([1], to: "data/partial/\(task)") }
        // Another node found the second one useless, and has not stored any progress of its task yet.
        try await home.query("INSERT INTO useless_file (node, path) VALUES ('early', 'partial/2')")
        await service.scheduler.removeUselessFiles()
        #expect(exists(2))
        #expect(try await service.store.files.discarded(limit: 9) == ["partial/2"])
        let undecided = await service.run([.removeIfOrphan("partial/1")]).failed
        #expect(undecided == [.removeIfOrphan("partial/1")] && exists(1))

        try await home.query("UPDATE live SET node = 'late'")
        await service.scheduler.removeUselessFiles()
        #expect(!exists(2))
        #expect(try await service.store.files.discarded(limit: 9) == [])
        #expect(await service.run(undecided).failed == [])
        #expect(!exists(1))
        await service.drain(within: .seconds(5))
        service.close()
    }
}
