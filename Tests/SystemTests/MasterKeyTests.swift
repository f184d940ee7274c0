import Glibc
import TestSupport
import Testing

/// A database and the key of its secrets belong together.
@Suite struct MasterKeyTests {
    /// A data folder with a finished task, after the end of its service.
    private func leftBehind() async throws -> TemporaryFolder {
        let data = TemporaryFolder()
        let scene = try await Scene(data: data)
        scene.origin.serve("/a", .text("content"))
        try await scene.completed(try await scene.download("/a"))
        try await scene.service.terminate()
        return data
    }

    /// Starts the service on a folder and expects a refusal.
    private func expectRefusal(_ data: TemporaryFolder) async throws {
        let result = try await ServiceProcess.run(
            ["serve", "--dev", "--listen", "127.0.0.1:0", "--data-dir", data.file("data")])
        #expect(result.status == .exited(73), "\(result)")
        for part in ["master.key", "restore", "--new-master-key"] {
            #expect(result.errors.contains(part), "\(part): \(result.errors)")
        }
    }

    @Test func `Without its master key a database is not opened, unless its secrets may be lost`() async throws {
        let data = try await leftBehind()
        let key = readFile(data.file("data/master.key"))
        unlink(data.file("data/master.key"))
        try await expectRefusal(data)
        #expect(readFile(data.file("data/master.key")) == nil, "another key was made")

        let service = try await ServiceProcess(["--new-master-key"], data: data)
        expect(try await service.api.get("/readyz"), 200)
        let task = try await service.api.get("/v1/sessions/s/tasks/1")
        #expect(task.status == 200 && task.json["outcome"] == "succeeded", "\(task.text)")
        #expect(try await service.api.get("/v1/sessions/s/tasks/1/content").text == "content")
        #expect(readFile(data.file("data/master.key")) != key)
        let receiver = try Receiver()
        expect(try await service.api.patch("/v1/app", ["webhook": ["url": .string(receiver.url)]]), 200)
        expect(try await service.api.post("/v1/app/webhook/ping"), 200)
        #expect(receiver.deliveries.first?.isSigned(with: devSecret) == true, "the documented secret of --dev")
        try await service.terminate()

        let again = try await ServiceProcess(data: data)
        expect(try await again.api.get("/readyz"), 200)
    }

    @Test func `With another master key a database is not opened`() async throws {
        let data = try await leftBehind()
        let right = try #require(readFile(data.file("data/master.key")))
        data.write(Array((Base64Text.encode([UInt8](repeating: 9, count: 32)) + "\n").utf8), to: "data/master.key")
        try await expectRefusal(data)
        data.write(right, to: "data/master.key")
        let service = try await ServiceProcess(data: data)
        expect(try await service.api.get("/readyz"), 200)
    }
}
