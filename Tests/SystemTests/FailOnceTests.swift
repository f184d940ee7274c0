import Core
import Glibc
import TestSupport
import Testing

/// Calls on files that fail once, or at which the service is killed: cases that `scripts/torture` found.
@Suite(.enabled(if: access("/usr/bin/cc", X_OK) == 0, "/usr/bin/cc is needed")) struct FailOnceTests {
    enum Fault {
        case killBefore
        case killAfter
        case error(Int32)
    }

    /// The first call of a class, by its name in `Tests/Faults/fail-once.c`.
    struct Call {
        let name: String
        let fault: Fault

        init(_ name: String, _ fault: Fault) {
            self.name = name
            self.fault = fault
        }

        /// `struct control` of the library.
        var control: [UInt8] {
            let (kind, error): (UInt32, Int32) =
                switch fault {
                case .killBefore: (1, 0)
                case .killAfter: (2, 0)
                case .error(let number): (3, number)
                }
            let numbers = [1, 0, 1, kind, UInt32(bitPattern: error)].flatMap { number in
                (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
            }
            let bytes = numbers + Array(name.utf8)
            return bytes + [UInt8](repeating: 0, count: 4096 - bytes.count)
        }
    }

    private static let length = 300_000

    /// Compiles the library, and returns the environment in which the call has its fault. The roots are folders, by name.
    private static func environment(
        _ call: Call, _ folder: TemporaryFolder, _ roots: [String: String]
    ) async throws -> [String: String] {
        let library = folder.file("fail-once.so")
        let source = "\(repository)/Tests/Faults/fail-once.c"
        try await ChildProcess.run(["/usr/bin/cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"])
        return [
            "LD_PRELOAD": library, "FAIL_ONCE_CONTROL": folder.write(call.control, to: "control"),
            "FAIL_ONCE_TRACE": folder.file("trace"),
            "FAIL_ONCE_ROOTS": roots.map { "\($0.key)=\($0.value)" }.joined(separator: ";"),
        ]
    }

    /// Whether the call has occurred.
    private static func isMet(_ folder: TemporaryFolder) -> Bool { readFile(folder.file("control"))?[4] == 1 }

    @Test(
        .enabled(if: !TestStore.isOnServer),
        arguments: [
            Call("pwrite data/master.key.partial", .killBefore), Call("renameat2 data/master.key", .killBefore),
            Call("pwrite data/urlsessiond.db", .error(ENOSPC)), Call("fdatasync data/urlsessiond.db-wal", .error(EIO)),
        ])
    func `A failed first start does not prevent the next one`(_ call: Call) async throws {
        let (folder, data) = (TemporaryFolder(), TemporaryFolder())
        let environment = try await Self.environment(call, folder, ["data": data.file("data")])
        await #expect(throws: ServiceProcess.NotListening.self) {
            try await ServiceProcess(environment: environment, data: data)
        }
        #expect(Self.isMet(folder))
        let service = try await ServiceProcess(data: data)
        expect(try await service.api.get("/readyz"), 200)
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `A new data folder whose entry is not durable prevents the start`() async throws {
        let (folder, data) = (TemporaryFolder(), TemporaryFolder())
        let call = Call("fsync parent", .error(EIO))
        let environment = try await Self.environment(call, folder, ["parent": data.path])
        await #expect(throws: ServiceProcess.NotListening.self) {
            try await ServiceProcess(environment: environment, data: data)
        }
        #expect(Self.isMet(folder) && entries(of: data.path).isEmpty)
        let service = try await ServiceProcess(data: data)
        expect(try await service.api.get("/readyz"), 200)
    }

    /// A scene whose files below the root `out` are in a folder, and have a fault.
    private static func scene(
        _ call: Call, _ folder: TemporaryFolder, _ files: TemporaryFolder
    ) async throws -> Scene {
        let data = TemporaryFolder()
        let roots = ["data": data.file("data"), "files": files.path]
        let scene = try await Scene(
            ["--files-root", "out=\(files.path)"], environment: try await environment(call, folder, roots), data: data)
        scene.origin.serve("/a", .generated(seed: 1, length: length))
        return scene
    }

    @Test(
        .enabled(if: !TestStore.isOnServer),
        arguments: [
            Call("fsync files", .error(EIO)), Call("openat2 files", .error(EIO)),
            Call("renameat2 files/a.bin", .error(EIO)),
        ])
    func `A fault at a destination fails no task that may have moved its file`(_ call: Call) async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(call, folder, files)
        let number = try await scene.download("/a", ["destination": ["root": "out", "path": "a.bin"]])
        let task = try await scene.completed(number)
        #expect(Self.isMet(folder) && task["outcome"] == "succeeded", "\(task)")
        #expect(readFile(files.file("a.bin")) == Content.bytes(seed: 1, length: Self.length))
        #expect(scene.service.errors.contains("Input/output error"), "\(scene.service.errors)")
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `Bytes whose sync failed are received again, because the kernel may have dropped them`() async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(Call("fdatasync data/partial/*", .error(EIO)), folder, files)
        let number = try await scene.download("/a")
        let task = try await scene.completed(number)
        #expect(Self.isMet(folder) && task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").map { $0.fields["Range"] } == [nil, nil])
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: Self.length))
    }

    @Test(
        .enabled(if: !TestStore.isOnServer),
        arguments: [Call("openat2 files/a.bin", .error(EIO)), Call("pread files/a.bin", .error(EIO))])
    func `A start recognises a published file whose first read fails`(_ call: Call) async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(Call("renameat2 files/a.bin", .killAfter), folder, files)
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: Self.length), turns: [[.holdBody(after: 0, gate)]])
        let number = try await scene.download("/a", ["destination": ["root": "out", "path": "a.bin"]])
        gate.open()
        #expect(try await scene.service.waitForExit() == .killed(SIGKILL))
        folder.write(call.control, to: "control")
        try await scene.service.start()
        let task = try await scene.completed(number)
        #expect(Self.isMet(folder) && task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").count == 1)
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `An upload survives a failed read of its body`() async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(Call("open data/bodies/*/*", .error(EIO)), folder, files)
        scene.origin.serve("/up", .upload())
        let bytes = Content.bytes(seed: 2, length: Self.length)
        let body = try await scene.api.send("POST", "/v1/bodies", body: bytes)
        let number = try await scene.upload("/up", body: ["id": body.json["id"]])
        let task = try await scene.completed(number)
        #expect(Self.isMet(folder) && task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/up").last?.bodySHA256 == Content.sha256(of: bytes))
    }

    @Test(
        .enabled(if: !TestStore.isOnServer),
        arguments: [Call("openat2 files/b.bin", .error(EIO)), Call("create data/bodies/*/*", .error(EIO))])
    func `A disk fault behind a named file is answered with 500, not 422`(_ call: Call) async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(call, folder, files)
        files.write(Content.bytes(seed: 2, length: Self.length), to: "b.bin")
        let task: JSON = [
            "kind": "upload", "request": ["url": .string(scene.origin.url("/a"))],
            "body": ["root": "out", "path": "b.bin"],
        ]
        expectProblem(try await scene.api.post("/v1/sessions/s/tasks", task), 500, "internal-error")
        #expect(Self.isMet(folder))
        try await eventually("the error is logged") { scene.service.errors.contains("Input/output error") }
        expect(try await scene.api.post("/v1/sessions/s/tasks", task), 201)
    }

    @Test(.enabled(if: !TestStore.isOnServer))
    func `A start logs a folder that it cannot list`() async throws {
        let (folder, files) = (TemporaryFolder(), TemporaryFolder())
        let scene = try await Self.scene(Call("opendir data/partial", .error(EIO)), folder, files)
        try await eventually("the log names it") { scene.service.errors.contains("keeps its orphans") }
    }
}
