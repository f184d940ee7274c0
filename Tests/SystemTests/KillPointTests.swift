import Core
import Glibc
import TestSupport
import Testing

/// SIGKILL at chosen points: between operations on files and their commit.
@Suite struct KillPointTests {
    private static let canCompile = access("/usr/bin/cc", X_OK) == 0
    private static let length = 300_000

    /// Compiles `Tests/Faults/kill-at.c`.
    private static func killAt(in folder: TemporaryFolder) async throws -> [String: String] {
        let library = folder.file("kill-at.so")
        try await ChildProcess.run(
            ["/usr/bin/cc", "-shared", "-fPIC", "-O1", "-o", library, "\(repository)/Tests/Faults/kill-at.c", "-ldl"])
        return ["LD_PRELOAD": library, "KILL_AT_CONTROL": folder.file("kill")]
    }

    /// Downloads to a destination with a kill at a point, and checks the result of the next process.
    ///
    /// - Returns: The number of requests to the origin.
    private func move(
        to files: TemporaryFolder, replace: Bool, _ folder: TemporaryFolder, killedAt point: String
    ) async throws -> Int {
        let scene = try await Scene(
            ["--files-root", "out=\(files.path)"], environment: try await Self.killAt(in: folder))
        if replace { files.write([1, 2, 3], to: "a.bin") }
        // No resume point is possible, and the service lives until it has answered.
        let gate = Gate()
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.length).with { $0.etag = nil }, turns: [[.holdBody(after: 0, gate)]])
        folder.write(Array(point.utf8), to: "kill")
        let destination: JSON = ["root": "out", "path": "a.bin", "replace": .bool(replace)]
        let number = try await scene.download("/a", ["destination": destination])
        gate.open()
        #expect(try await scene.service.waitForExit() == .killed(SIGKILL))
        unlink(folder.file("kill"))
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(readFile(files.file("a.bin")) == Content.bytes(seed: 1, length: Self.length))
        #expect(filesBelow(files.path) == ["a.bin"])
        try await eventually("no partial file is left") { filesBelow(scene.service.data.file("data/partial")).isEmpty }
        expectSound(try await scene.events())
        return scene.origin.requests("/a").count
    }

    @Test(.enabled(if: canCompile, "/usr/bin/cc is needed"), arguments: [false, true])
    func `A kill between the move to a destination and its commit has no effect`(
        _ replace: Bool
    ) async throws {
        let folder = TemporaryFolder()
        let count = try await move(to: TemporaryFolder(), replace: replace, folder, killedAt: "after rename a.bin")
        #expect(count == 1)
    }

    @Test(.enabled(if: canCompile, "/usr/bin/cc is needed"))
    func `A kill between the plan and the move costs another attempt`() async throws {
        let folder = TemporaryFolder()
        let count = try await move(to: TemporaryFolder(), replace: false, folder, killedAt: "before rename a.bin")
        #expect(count == 2)
    }

    @Test(
        .enabled(if: canCompile, "/usr/bin/cc is needed"),
        arguments: [("after rename a.bin", 1), ("before rename .urlsessiond-", 2)])
    func `A kill during a copy to another filesystem costs one attempt, and leaves no copy`(
        _ point: String, _ requests: Int
    ) async throws {
        let folder = TemporaryFolder()
        guard let files = folder.onOtherFilesystem() else { return }
        #expect(try await move(to: files, replace: false, folder, killedAt: point) == requests)
    }

    @Test(.enabled(if: canCompile, "/usr/bin/cc is needed"))
    func `A foreign file is never mistaken for the task's own`() async throws {
        let folder = TemporaryFolder()
        let files = TemporaryFolder()
        let scene = try await Scene(
            ["--files-root", "out=\(files.path)"], environment: try await Self.killAt(in: folder))
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: [[.holdBody(after: 0, gate)]])
        folder.write(Array("before rename a.bin".utf8), to: "kill")
        let number = try await scene.download("/a", ["destination": ["root": "out", "path": "a.bin"]])
        gate.open()
        #expect(try await scene.service.waitForExit() == .killed(SIGKILL))
        unlink(folder.file("kill"))
        let others = Content.bytes(seed: 1, length: Self.length)
        files.write(others, to: "a.bin")
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -3000, "\(task)")
        #expect(readFile(files.file("a.bin")) == others)
    }

    @Test(.enabled(if: !TestStore.isOnServer), .enabled(if: canCompile, "/usr/bin/cc is needed"))
    func `A kill before the commit of a cancellation leaves the task its bytes`() async throws {
        let folder = TemporaryFolder()
        let scene = try await Scene(environment: try await Self.killAt(in: folder))
        let (gate, length) = (Gate(), 2 << 20)
        scene.origin.serve("/a", .generated(seed: 1, length: length), turns: [[.holdBody(after: 1 << 20, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"].int == 1 << 20 }
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/suspend"), 200)
        try await eventually("the transfer stops") { scene.origin.openConnections == 0 }
        try await scene.waitUntilRecorded(1 << 20)
        folder.write(Array("before write -wal".utf8), to: "kill")
        _ = try? await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel", ["byProducingResumeData": true])
        #expect(try await scene.service.waitForExit() == .killed(SIGKILL))
        unlink(folder.file("kill"))
        try await scene.service.start()
        #expect(try await scene.task(number)["state"] == "suspended")
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/resume"), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
        #expect(scene.origin.requests("/a").last?.fields.contains("Range") == true)
        #expect(Content.sha256(of: try await scene.content(number).body) == Content.sha256(seed: 1, length: length))
    }
    @Test(.enabled(if: !TestStore.isOnServer), .enabled(if: canCompile, "/usr/bin/cc is needed"))
    func `A task resumes with its bytes after a kill during its cancellation`() async throws {
        let folder = TemporaryFolder()
        let scene = try await Scene(environment: try await Self.killAt(in: folder))
        let (gate, length) = (Gate(), 2 << 20)
        scene.origin.serve("/a", .generated(seed: 1, length: length), turns: [[.holdBody(after: 1 << 20, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitUntilRecorded(1 << 20)
        // The first commit of the cancellation suspends the task, without any other change.
        folder.write(Array("after sync -wal".utf8), to: "kill")
        _ = try? await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel", ["byProducingResumeData": true])
        #expect(try await scene.service.waitForExit() == .killed(SIGKILL))
        unlink(folder.file("kill"))
        #expect(try await scene.storedTask.state == .suspended)
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").last?.fields["Range"] == "bytes=\(1 << 20)-")
        #expect(Content.sha256(of: try await scene.content(number).body) == Content.sha256(seed: 1, length: length))
    }
}
