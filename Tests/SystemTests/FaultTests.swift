import Base
import Glibc
import TestSupport
import Testing

/// Faults of the machine: a failing disk and a full disk.
@Suite(.enabled(if: !TestStore.isOnServer)) struct FaultTests {
    /// The value of `Command.Exit.software`: EX_SOFTWARE of sysexits.h.
    private static let softwareError: Int32 = 70

    // MARK: A sync that fails

    /// Compiles `Tests/Faults/failing-sync.c`.
    private static func failingSync(in folder: TemporaryFolder) async throws -> String {
        let library = folder.file("failing-sync.so")
        try await ChildProcess.run(
            [
                "/usr/bin/cc", "-shared", "-fPIC", "-O1", "-o", library, "\(repository)/Tests/Faults/failing-sync.c",
                "-ldl",
            ])
        return library
    }

    @Test(.enabled(if: access("/usr/bin/cc", X_OK) == 0, "/usr/bin/cc is needed"))
    func `If the sync of a commit fails, no request succeeds, and the next start is consistent`() async throws {
        let folder = TemporaryFolder()
        let library = try await Self.failingSync(in: folder)
        let control = folder.file("fail")
        let environment = ["LD_PRELOAD": library, "FAILING_SYNC_CONTROL": control]
        let scene = try await Scene(environment: environment)
        let (count, clients) = (400, 8)
        let accepted = Locked<[String: Int]>([:])
        let toldAfter = Locked<[String]>([])

        /// Creates tasks until the service has ended. A request that begins after syncs fail must not succeed.
        @Sendable func create(_ client: Int) async {
            for number in 0..<count {
                let id = "c-\(client)-\(number)"
                let failsAlready = access(control, F_OK) == 0
                let task = scene.downloadOf("/a", ["clientTaskId": .string(id), "state": "suspended"])
                guard let answer = try? await scene.api.post("/v1/sessions/s/tasks", task) else { return }
                guard answer.status == 201, let made = answer.json["taskIdentifier"].int else { continue }
                accepted.withLock { $0[id] = made }
                if failsAlready { toldAfter.withLock { $0.append(id) } }
            }
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in 0..<clients { group.addTask { await create(client) } }
            try await eventually("some are accepted") { accepted.withLock { $0.count } > 20 }
            folder.write([], to: "fail")
            #expect(try await scene.service.waitForExit() == .exited(Self.softwareError), "\(scene.service.errors)")
            try await group.waitForAll()
        }
        #expect(toldAfter.withLock { $0 } == [])
        unlink(control)
        try await scene.service.start()

        scene.origin.serve("/a", .text("content"))
        let known = accepted.withLock { $0 }
        for (id, number) in known { #expect(try await scene.task(number)["clientTaskId"].string == id) }
        expect(try await scene.api.post("/v1/sessions/s/tasks/resume", [:]), 200)
        let session = try await scene.settled()
        let succeeded = session["taskCounts"]["succeeded"].int ?? 0
        #expect(succeeded >= known.count && session["taskCounts"]["completed"].int == succeeded, "\(session)")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == succeeded)
    }

    // MARK: A disk that is full

    /// Runs a command with a small filesystem as a folder, which disappears with the process.
    private static func small(_ folder: String, megabytes: Int) -> [String] {
        let script = """
            mount -t tmpfs -o size=\(megabytes)m,mode=700 none "$0" && exec setpriv --pdeathsig KILL "$@"
            """
        return ["/usr/bin/unshare", "-rm", "/bin/sh", "-c", script, folder]
    }

    private static func canMount() async -> Bool {
        let folder = TemporaryFolder()
        return (try? await ChildProcess.run(small(folder.path, megabytes: 1) + ["/bin/true"])) != nil
    }

    /// Writes a file until the disk is full.
    private static func fill(_ path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0, "\(path): \(String(cString: strerror(errno)))")
        defer { close(descriptor) }
        var size = 1 << 20
        while size > 0 {
            let zeros = [UInt8](repeating: 0, count: size)
            if write(descriptor, zeros, size) != size { size /= 2 }
        }
    }

    @Test(.enabled("a mount namespace of one's own is needed (unshare -rm)") { await canMount() })
    func `Without /proc the service reports the fault and ends`() async throws {
        let failure = await #expect(throws: ServiceProcess.NotListening.self) {
            try await ServiceProcess(wrapper: Self.small("/proc", megabytes: 1))
        }
        #expect(failure?.status == .exited(71), "\(String(describing: failure))")
        #expect(failure?.errors.contains("/proc is not mounted") == true, "\(String(describing: failure))")
    }

    @Test(.enabled("a mount namespace of one's own is needed (unshare -rm)") { await canMount() })
    func `A full disk pauses transfers, corrupts nothing, and they resume by themselves`() async throws {
        let data = TemporaryFolder()
        let folder = data.makeFolder("data")
        let scene = try await Scene(
            ["--free-disk-floor", "2097152"], data: data, wrapper: Self.small(folder, megabytes: 48))
        let (gate, length) = (Gate(), 12 << 20)
        scene.origin.serve("/large", .generated(seed: 1, length: length), turns: [[.holdBody(after: 4 << 20, gate)]])
        scene.origin.serve("/small", .text("content"))
        let number = try await scene.download("/large")
        try await scene.waitFor("has bytes", task: number) { $0["countOfBytesReceived"] == .integer(4 << 20) }
        // The service has another filesystem there than this process.
        let filler = "/proc/\(scene.service.pid)/root\(folder)/filler"
        try Self.fill(filler)
        gate.open()

        try await eventually("it is not ready") { try await scene.api.get("/readyz").status == 503 }
        try await eventually("the transfer stops") { scene.origin.openConnections == 0 }
        expectProblem(
            try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/small")), 507, "insufficient-storage")
        expectProblem(try await scene.api.send("POST", "/v1/bodies", body: [1, 2, 3]), 507, "insufficient-storage")
        try await stays("it goes on living", for: .seconds(7)) {
            let task = try await scene.task(number)
            return task["state"] == "running" && task["error"].isNull
        }
        #expect(try await scene.api.get("/healthz").status == 200)

        #expect(unlink(filler) == 0)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 1, length: length))
        #expect(Content.sha256(of: try await scene.content(number).body) == Content.sha256(seed: 1, length: length))
        try await eventually("it is ready again") { try await scene.api.get("/readyz").status == 200 }
        try await scene.completed(try await scene.download("/small"))
        expectSound(try await scene.events())
    }
}
