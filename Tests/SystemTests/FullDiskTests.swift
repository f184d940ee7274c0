import Base
import Core
import TestSupport
import Testing

/// A disk too small for the downloads: 48 MiB, of which 2 stay free.
@Suite(.enabled("a mount namespace of one's own is needed (unshare -rm)") { await SmallDisk.canBeHad() })
struct FullDiskTests {
    private static let floor = 2 << 20
    private let disk: SmallDisk
    private let scene: Scene

    init() async throws {
        disk = try await SmallDisk(megabytes: 48)
        scene = try await Scene(
            ["--free-disk-floor", "\(Self.floor)"], data: disk.data, wrapper: disk.wrapper)
    }

    private func serve(_ path: String, seed: UInt64, megabytes: Int) -> String {
        let content = LargeContent(seed: seed, length: megabytes << 20)
        scene.origin.serve(path, Resource(.large(content), etag: "\"\(seed)\""))
        return content.sha256
    }

    /// Expects a succeeded task whose content has this digest.
    private func expectWhole(_ number: Int, _ digest: String) async throws {
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded" && task["content"]["digest"]["value"].string == digest, "\(task)")
        #expect(Content.sha256(of: try await scene.content(number).body) == digest)
    }

    @Test func `A download without room waits, other downloads complete beside it, and a restart changes nothing`()
        async throws
    {
        // One content longer than the free space, though not than the disk; and one that never ends.
        let huge = serve("/huge", seed: 1, megabytes: 44)
        scene.origin.serve("/endless", .text("x"), always: [.endless])
        let large = try await scene.download("/huge")
        let endless = try await scene.download("/endless")
        var small: [Int: String] = [:]
        for seed in 2..<10 as Range<UInt64> {
            let digest = serve("/\(seed)", seed: seed, megabytes: 2)
            small[try await scene.download("/\(seed)")] = digest
        }
        for (number, digest) in small { try await expectWhole(number, digest) }
        for number in [large, endless] {
            let waiting = try await scene.waitFor("waits for the disk", task: number) {
                $0["waitingFor"][0]["kind"] == "disk"
            }
            #expect(waiting["state"] == "running" && waiting["error"].isNull, "\(waiting)")
            #expect(waiting["attempts"]["count"] == 0, "\(waiting)")
        }
        // Bytes without a resume point are not kept meanwhile.
        try await eventually("no useless partial file") { disk.files("partial").isEmpty }
        #expect(disk.free > Self.floor)
        #expect(try await scene.api.get("/readyz").status == 200)

        try await scene.service.restart()
        for (number, digest) in small { try await expectWhole(number, digest) }
        let later = serve("/later", seed: 20, megabytes: 2)
        try await expectWhole(try await scene.download("/later"), later)
        try await scene.waitFor("waits again", task: large) { $0["waitingFor"][0]["kind"] == "disk" }
        #expect(disk.free > Self.floor)

        // There is never so much room, so the app cancels and requests less.
        for number in [large, endless] {
            expect(try await scene.api.post("/v1/sessions/s/tasks/\(number)/cancel"), 202)
            try await scene.completed(number)
        }
        _ = huge
        expectSound(try await scene.events())
    }

    @Test func `Of two downloads that do not fit together one is emptied, and resumes after the other`() async throws {
        let leashes = Locked(["/a": 8 << 20, "/b": 20 << 20])
        let first = LargeContent(seed: 1, length: 25 << 20)
        let second = LargeContent(seed: 2, length: 30 << 20)
        for (path, content) in [("/a", first), ("/b", second)] {
            scene.origin.serve(
                path, Resource(.large(content), etag: "\"1\""),
                turns: [[.leash { leashes.withLock { $0[path] ?? 0 } }]])
        }
        let a = try await scene.download("/a")
        let b = try await scene.download("/b")
        // Both begin while there is room for either.
        for (number, megabytes) in [(a, 8), (b, 20)] {
            try await scene.waitFor("has \(megabytes) MiB", task: number) {
                $0["countOfBytesReceived"].int ?? 0 >= megabytes << 20
            }
        }
        // The first stops shortly before its end, the second with more to come.
        leashes.withLock { $0["/a"] = .max }
        try await scene.waitFor("waits for the disk", task: a) { $0["waitingFor"][0]["kind"] == "disk" }
        leashes.withLock { $0["/b"] = .max }
        try await expectWhole(a, first.sha256)
        try await scene.waitFor("waits for the disk", task: b) { $0["waitingFor"][0]["kind"] == "disk" }
        #expect(disk.free > Self.floor)
        expect(try await scene.api.post("/v1/sessions/s/tasks/\(a)/content/claim"), 200)
        try await expectWhole(b, second.sha256)
        let given = try await scene.task(b)
        #expect(given["attempts"]["count"] == 1 && given["countOfBytesFetchedTwice"].int ?? 0 >= 16 << 20, "\(given)")
        expectSound(try await scene.events())
    }

    @Test func `Transfers that stopped at the floor resume when there is room`() async throws {
        let content = LargeContent(seed: 1, length: 24 << 20)
        let gate = Gate()
        scene.origin.serve(
            "/a", Resource(.large(content), etag: "\"1\""), turns: [[.holdBody(after: 8 << 20, gate)]])
        let number = try await scene.download("/a")
        try await scene.waitFor("has 8 MiB", task: number) { $0["countOfBytesReceived"].int ?? 0 >= 8 << 20 }
        try await disk.fill(leaving: Self.floor + (6 << 20))
        // Other programs' use is detected when the disk is measured.
        try await eventually("the service has seen it") {
            let metrics = try await scene.admin.get("/metrics").text
            let line = metrics.split(separator: "\n").first { $0.hasPrefix("urlsessiond_free_bytes ") }
            let free = line?.split(separator: " ").last.flatMap { Double($0) }
            return free.map { $0 < Double(16 << 20) } ?? false
        }
        gate.open()
        try await scene.waitFor("waits for the disk", task: number) { $0["waitingFor"][0]["kind"] == "disk" }
        #expect(disk.free >= Self.floor)
        disk.empty()
        try await expectWhole(number, content.sha256)
        let resumptions = try await scene.events().filter { $0["type"] == "task.didResumeAtOffset" }
        #expect(resumptions.count == 1 && resumptions[0]["data"]["fileOffset"].int ?? 0 >= 8 << 20, "\(resumptions)")
    }

    @Test func `The log reports once that the disk is below its floor, and once that it is above again`() async throws {
        func lines(_ level: String) -> Int {
            scene.service.errors.split(separator: "\n").count {
                $0.contains("disk") && $0.contains("floor") && $0.contains(#""level":"\#(level)""#)
            }
        }
        for round in 1...2 {
            try await disk.fill(leaving: Self.floor / 2)
            try await eventually("the log reports too little space") { lines("warning") == round }
            expectProblem(
                try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 507, "insufficient-storage")
            disk.empty()
            try await eventually("the log reports enough space") { lines("info") == round }
        }
        #expect(lines("warning") == 2)
    }

    @Test func `A content that the whole disk cannot hold fails with its reason`() async throws {
        _ = serve("/a", seed: 1, megabytes: 47)
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "failed" && task["error"]["code"] == -3003, "\(task["error"])")
        #expect(task["error"]["underlying"]["code"] == "insufficient-storage", "\(task["error"])")
        #expect(task["countOfBytesReceived"] == 0)
    }

    @Test func `A destination with a full disk of its own is tried as often as the policy allows, and then named`()
        async throws
    {
        let root = disk.data.file("data")
        let scene = try await Scene(
            ["--files-root", "small=\(root)"],
            configuration: ["retryPolicy": ["maximumAttempts": 2, "initialDelay": 0.1, "maximumDelay": 0.1]],
            wrapper: disk.wrapper)
        let content = LargeContent(seed: 1, length: 4 << 20)
        scene.origin.serve("/a", Resource(.large(content), etag: "\"1\""))
        try await disk.fill(leaving: 1 << 20)
        let number = try await scene.download("/a", ["destination": ["root": "small", "path": "a"]])
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "failed" && task["error"]["underlying"]["code"] == "disk", "\(task["error"])")
        #expect(scene.origin.requests("/a").count <= 2)
        #expect(!disk.files("").contains { $0 == "a" || $0.hasPrefix(".urlsessiond-") })
        disk.empty()
    }

    // MARK: Bodies

    @Test func `A body stops at the floor`() async throws {
        let tooMuch = [UInt8](repeating: 7, count: 46 << 20)
        expectProblem(try await scene.api.send("POST", "/v1/bodies", body: tooMuch), 507, "insufficient-storage")
        let announced = try await scene.api.send(
            "POST", "/v1/bodies", headers: [("Upload-Complete", "?0"), ("Upload-Length", "\(45 << 20)")],
            body: [1, 2, 3])
        expectProblem(announced, 507, "insufficient-storage")
        try await eventually("nothing is left") { disk.files("partial").isEmpty && disk.files("bodies").isEmpty }
        #expect(disk.free > Self.floor)
    }

    @Test func `An append to a draft stops at the floor, and the draft keeps its bytes`() async throws {
        let start: [UInt8] = [1, 2, 3]
        let made = try await scene.api.send("POST", "/v1/bodies", headers: [("Upload-Complete", "?0")], body: start)
        expect(made, 201)
        let path = try #require(made.fields["Location"])
        let rest = [UInt8](repeating: 7, count: 46 << 20)
        let fields = [("Content-Type", "application/partial-upload"), ("Upload-Offset", "3")]
        expectProblem(
            try await scene.api.send("PATCH", path, headers: fields, body: rest), 507, "insufficient-storage")
        #expect(disk.free > Self.floor)
        let kept = try await scene.api.send("HEAD", path).fields["Upload-Offset"].flatMap { Int($0) } ?? 0
        #expect(kept > 3, "\(kept)")
        expect(try await scene.api.send("DELETE", path), 204)
        try await eventually("nothing is left") { disk.files("bodies").isEmpty }
    }
}

/// A disk of 96 MiB, of which 16 stay free.
@Suite(.enabled("a mount namespace of one's own is needed (unshare -rm)") { await SmallDisk.canBeHad() })
struct NoByteLeftTests {
    @Test(.enabled(if: !TestStore.isOnServer))
    func `Without a free byte the service starts, and its data can be read`()
        async throws
    {
        let disk = try await SmallDisk(megabytes: 96)
        let scene = try await Scene(
            ["--free-disk-floor", "\(16 << 20)"], data: disk.data, wrapper: disk.wrapper)
        scene.origin.serve("/a", .generated(seed: 1, length: 300_000))
        scene.origin.serve("/endless", .text("x"), always: [.endless])
        let number = try await scene.download("/a")
        try await scene.completed(number)
        try await eventually("the reserve is kept") { disk.free < 88 << 20 }
        // A service that was stopped in order leaves no write-ahead log that it could overwrite.
        try await scene.service.terminate()
        try await disk.fill(leaving: 0)
        #expect(disk.free == 0)
        try await scene.service.start()
        #expect(try await scene.content(number).body == Content.bytes(seed: 1, length: 300_000))
        #expect(try await scene.api.get("/readyz").status == 503)
        expectProblem(
            try await scene.api.post("/v1/sessions/s/tasks", scene.downloadOf("/a")), 507, "insufficient-storage")
        disk.empty()
        try await eventually("it is ready") { try await scene.api.get("/readyz").status == 200 }
        try await scene.completed(try await scene.download("/a"))
    }
}
