import Base
import Core
import Glibc
import TestSupport
import Testing

/// A service whose state moves from a file to a server, and back.
@Suite(.enabled(if: PostgreSQL.isAvailable && !TestStore.isOnServer)) struct MovingTests {
    private static func carry(_ verb: String, _ file: String, _ data: TemporaryFolder, _ store: [String]) async throws {
        let run = try await ServiceProcess.run([verb, file, "--data-dir", data.file("data")] + store)
        try #require(run.status == .exited(0), "\(run.errors)")
    }

    private static func state(_ scene: Scene) async throws -> [JSON] {
        let events = try await scene.api.get("/v1/sessions/s/events").json
        return [
            try await scene.api.get("/v1/sessions/s/tasks").json["tasks"], events["events"],
            try await scene.session()["taskCounts"], try await scene.api.get("/v1/app").json["identifier"],
        ]
    }

    @Test func `Tasks, events and contents are moved, and waiting tasks resume`() async throws {
        let data = TemporaryFolder()
        let scene = try await Scene(data: data)
        scene.origin.serve("/small", .text("small"))
        scene.origin.serve("/large", .generated(seed: 1, length: 300_000))
        let small = try await scene.download("/small", ["clientTaskId": "é🦊"])
        let large = try await scene.download("/large")
        let waiting = try await scene.download("/large", ["state": "suspended"])
        for task in [small, large] { #expect(try await scene.completed(task)["outcome"] == "succeeded") }
        let before = try await Self.state(scene)
        try await scene.service.terminate()

        let database = try await SharedPostgreSQL.database()
        let store = ["--store", database.connection]
        try await Self.carry("export", data.file("one"), data, [])
        try await Self.carry("import", data.file("one"), data, store)
        let moved = try await ServiceProcess(store, data: data)
        let there = Scene(moved, scene.origin)
        #expect(try await Self.state(there) == before)
        #expect(try await there.content(small).text == "small")
        #expect(Content.sha256(of: try await there.content(large).body) == Content.sha256(seed: 1, length: 300_000))
        expect(try await there.api.post("/v1/sessions/s/tasks/\(waiting)/resume"), 200)
        #expect(try await there.completed(waiting)["outcome"] == "succeeded")
        let next = try await there.download("/small")
        #expect(next == waiting + 1)
        #expect(try await there.completed(next)["outcome"] == "succeeded")
        let later = try await Self.state(there)
        try await moved.terminate()

        rename(data.file("data/urlsessiond.db"), data.file("old"))
        try await Self.carry("export", data.file("two"), data, store)
        try await Self.carry("import", data.file("two"), data, [])
        let back = Scene(try await ServiceProcess(data: data), scene.origin)
        #expect(try await Self.state(back) == later)
        #expect(try await back.content(next).text == "small")
    }

    @Test func `Existing data is not overwritten`() async throws {
        let data = TemporaryFolder()
        let service = try await ServiceProcess(data: data)
        try await Self.carry("export", data.file("one"), data, [])
        let folder = data.file("data")
        let busy = try await ServiceProcess.run(["import", data.file("one"), "--data-dir", folder])
        #expect(busy.status == .exited(75) && busy.errors.contains("in use"), "\(busy.errors)")
        try await service.terminate()
        let full = try await ServiceProcess.run(["import", data.file("one"), "--data-dir", folder])
        #expect(full.status == .exited(73) && full.errors.contains("exists already"), "\(full.errors)")
        let again = try await ServiceProcess.run(["export", data.file("one"), "--data-dir", folder])
        #expect(again.status == .exited(73) && again.errors.contains("exists already"), "\(again.errors)")
        let none = try await ServiceProcess.run(["export", "--data-dir", folder])
        #expect(none.status == .exited(64) && none.errors.contains("usage"), "\(none.errors)")
    }

    @Test func `A damaged export is refused`() async throws {
        let data = TemporaryFolder()
        let scene = try await Scene(data: data)
        scene.origin.serve("/small", .text("small"))
        try await scene.completed(try await scene.download("/small"))
        try await scene.service.terminate()
        try await Self.carry("export", data.file("whole"), data, [])
        let whole = try #require(readFile(data.file("whole")))
        let place = data.makeFolder("new")
        var damaged = (0..<8).map { index in
            var bytes = whole
            bytes[whole.count * index / 8 + 100] ^= 4
            return bytes
        }
        damaged += [Array(whole.dropLast()), Array(whole.prefix(whole.count / 2)), []]
        for bytes in damaged {
            let file = data.write(bytes, to: "damaged")
            let run = try await ServiceProcess.run(["import", file, "--data-dir", place])
            #expect(run.status == .exited(73) && run.errors.contains("Export again"), "\(run.errors)")
            #expect(readFile("\(place)/urlsessiond.db") == nil)
        }
        let run = try await ServiceProcess.run(["import", data.file("whole"), "--data-dir", place])
        #expect(run.status == .exited(0), "\(run.errors)")
    }
}
