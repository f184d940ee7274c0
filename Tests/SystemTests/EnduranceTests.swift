import Base
import Core
import Glibc
import TestSupport
import Testing

/// docs/transfers.md "Resuming downloads" and "Resuming uploads" at length: one large transfer that is interrupted
/// repeatedly.
///
/// 256 MiB, 20 kills and 12 cuts; with `SOAK=1` 1 GiB, 100 kills and 50 cuts. `ENDURANCE_MIB`, `ENDURANCE_KILLS`,
/// `ENDURANCE_CUTS` and `ENDURANCE_SEED` set each alone. Every run prints its figures.
@Suite(.serialized) struct EnduranceTests {
    private static let quick: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.1]]

    /// The size, and the number of interruptions.
    private struct Scale {
        let mebibytes = number("ENDURANCE_MIB", Self.isSoak ? 1024 : 256)
        let kills = number("ENDURANCE_KILLS", Self.isSoak ? 100 : 20)
        let cuts = number("ENDURANCE_CUTS", Self.isSoak ? 50 : 12)
        let seed = UInt64(number("ENDURANCE_SEED", 1))

        private static let isSoak = getenv("SOAK").map { String(cString: $0) } == "1"

        var length: Int { mebibytes << 20 }

        private static func number(_ name: String, _ standard: Int) -> Int {
            getenv(name).flatMap { Int(String(cString: $0)) } ?? standard
        }
    }

    /// The state at a kill: the request's offset, the bytes that the origin had sent, those that the service had
    /// written, and the recorded durable offset.
    private struct Kill {
        let start: Int
        let sent: Int
        let received: Int
        let recorded: Int
    }

    // MARK: Downloads

    @Test func `A download survives kills at any offset, and each repeats at most 8 MiB`() async throws {
        let scale = Scale()
        let content = LargeContent(seed: scale.seed, length: scale.length)
        let scene = try await Scene(configuration: Self.quick)
        let partial = scene.service.data.file("data/partial/1")
        // The origin is at most one piece ahead of the service, so that its sent bytes were fetched. It stops shortly
        // after the offset of the next kill, so that no kill is too late.
        let end = Locked(0)
        scene.origin.serve(
            "/large", Resource(.large(content), etag: "\"v\""),
            always: [.leash { min(end.withLock { $0 }, (fileLength(partial) ?? 0) + 1 << 20) }])
        var random = SeededRandom(seed: scale.seed)
        let ahead = 6 << 20
        let offsets = (0..<scale.kills).map { _ in Int.random(in: 1..<scale.length - ahead, using: &random) }.sorted()
        end.withLock { $0 = offsets[0] + ahead }
        let began = ContinuousClock.now
        let number = try await scene.download("/large")

        var kills: [Kill] = []
        for (index, offset) in offsets.enumerated() {
            try await eventually("the origin has sent byte \(offset)", within: .seconds(120)) {
                let requests = scene.origin.requests("/large")
                guard requests.count > index, let last = requests.last, last.bytesSent > 0 else { return false }
                return Self.start(last) + last.bytesSent > offset
            }
            try await scene.service.kill()
            try await eventually("the origin has noticed") { scene.origin.requests("/large").last?.isOver == true }
            let request = try #require(scene.origin.requests("/large").last)
            let recorded = try await scene.storedProgress()?.kept.point?.offset ?? 0
            kills.append(
                Kill(
                    start: Self.start(request), sent: Self.start(request) + request.bytesSent,
                    received: fileLength(partial) ?? 0, recorded: Int(recorded)))
            end.withLock { $0 = index + 1 < offsets.count ? offsets[index + 1] + ahead : .max }
            try await scene.service.start()
        }
        let task = try await scene.completed(number, within: .seconds(600))
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(task["content"]["digest"]["value"].string == content.sha256)
        let stored = scene.service.data.file("data/contents")
        let files = filesBelow(stored)
        #expect(files.map { fileSHA256("\(stored)/\($0)") } == [content.sha256])
        try await check(kills, scale, scene)
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        Self.printFigures(
            "download of \(scale.mebibytes) MiB, seed \(scale.seed), \(Int(seconds)) s", kills,
            sent: scene.origin.bytesSent("/large"), length: scale.length)
    }

    private func check(_ kills: [Kill], _ scale: Scale, _ scene: Scene) async throws {
        let requests = scene.origin.requests("/large")
        #expect(requests.count == kills.count + 1)
        let allowed = 8 << 20
        for (kill, next) in zip(kills, requests.dropFirst()) {
            // No recorded byte is requested again, and no other byte is skipped.
            #expect(Self.start(next) == kill.recorded, "\(kill): \(next.fields)")
            #expect(kill.recorded == 0 || next.fields["If-Range"] == "\"v\"", "\(next.fields)")
            #expect(kill.received - kill.recorded <= allowed && kill.recorded <= kill.received, "\(kill)")
            #expect(kill.sent - kill.recorded <= allowed, "\(kill)")
            #expect(kill.start <= kill.recorded, "\(kill)")
        }
        // The task's record matches the unrecorded bytes of the file.
        let lost = kills.reduce(0) { $0 + $1.received - $1.recorded }
        try await scene.service.kill()
        #expect(try await scene.storedProgress()?.bytesFetchedTwice ?? 0 == lost)
        try await scene.service.start()
        let sentTwice = scene.origin.bytesSent("/large") - scale.length
        #expect(sentTwice == kills.reduce(0) { $0 + $1.sent - $1.recorded })
        #expect(sentTwice >= lost && sentTwice <= kills.count * allowed)
        let events = try await scene.events()
        expectSound(events)
        let resumed = events.filter { $0["type"] == "task.didResumeAtOffset" }.map { $0["data"]["fileOffset"].int }
        Self.expect(resumed, allAmong: kills.map(\.recorded).filter { $0 > 0 })
        #expect(completions(events).count == 1)
    }

    /// The logged offsets in order, each that of a request. One is missing if the next kill came before its commit.
    private static func expect(_ told: [Int?], allAmong asked: [Int?], location: SourceLocation = #_sourceLocation) {
        var isAmong = true
        var left = asked[...]
        for offset in told {
            guard let index = left.firstIndex(of: offset) else {
                isAmong = false
                break
            }
            left = left[(index + 1)...]
        }
        #expect(isAmong, "\(told) among \(asked)", sourceLocation: location)
        #expect(told.count * 2 >= asked.count, "\(told) of \(asked)", sourceLocation: location)
    }

    private static func printFigures(_ what: String, _ kills: [Kill], sent: Int, length: Int) {
        let lost = kills.map { $0.received - $0.recorded }
        func mebibytes(_ count: Int) -> String { "\((Double(count) / 1_048_576 * 100).rounded() / 100)" }
        let mean = lost.isEmpty ? 0 : lost.reduce(0, +) / lost.count
        print(
            """
            ENDURANCE \(what): \(kills.count) kills; unrecorded at a kill: mean \(mebibytes(mean)) MiB, \
            most \(mebibytes(lost.max() ?? 0)) MiB; fetched twice in all, as the origin counts: \
            \(mebibytes(sent - length)) MiB, most at a kill \
            \(mebibytes(kills.map { $0.sent - $0.recorded }.max() ?? 0)) MiB; below a recorded offset: 0
            """)
    }

    private static func start(_ request: OriginServer.Request) -> Int {
        request.fields["Range"].flatMap { Int($0.dropFirst("bytes=".count).dropLast()) } ?? 0
    }

    // MARK: Uploads

    @Test func `An upload that is cut and killed repeatedly arrives unchanged`() async throws {
        let scale = Scale()
        let content = LargeContent(seed: scale.seed + 1, length: scale.length)
        let server = try DraftServer()
        server.answer(201, [("X-Target", "yes")], body: "stored")
        let files = TemporaryFolder()
        content.write(to: files, "large")
        let scene = try await Scene(["--files-root", "root=\(files.path)"], configuration: Self.quick)
        var random = SeededRandom(seed: scale.seed)
        // The first offset is large enough that the 104 was read before.
        let places = (0..<scale.cuts).map { _ in Int.random(in: 8 << 20..<scale.length, using: &random) }.sorted()
        let sizes: [Int] = zip(places, [0] + places).map { (place: Int, before: Int) -> Int in max(1, place - before) }
        // Every fifth interruption is a kill, while the server has stopped reading; the others cut the connection.
        let gates: [Gate?] = sizes.indices.map { $0 % 5 == 4 ? Gate() : nil }
        server.take(
            sizes.indices.map { (index: Int) -> DraftServer.Turn in
                DraftServer.Turn {
                    let (size, gate) = (sizes[index], gates[index])
                    $0.cutBody = size
                    if let gate { $0.hold = (size, gate) }
                    $0.ending = index % 2 == 0 ? .reset : .finish
                }
            })
        let began = ContinuousClock.now
        let number = try await scene.upload(
            "/up", body: ["root": "root", "path": "large"],
            ["request": ["url": .string(server.url("/up")), "method": "POST"]])
        for case let gate? in gates {
            try await eventually("the server stops to read", within: .seconds(300)) { gate.waiting == 1 }
            try await scene.service.kill()
            gate.open()
            try await eventually("the server has let go") { gate.waiting == 0 }
            try await scene.service.start()
        }
        let task = try await scene.completed(number, within: .seconds(600))
        #expect(task["outcome"] == "succeeded" && task["response"]["statusCode"] == 201, "\(task)")
        #expect(task["response"]["headers"]["X-Target"] == "yes")
        #expect(task["countOfBytesSent"].int == scale.length)
        #expect(try await scene.content(number).text == "stored")
        #expect(server.finished.map(\.length) == [scale.length])
        #expect(server.finished.map(\.sha256) == [content.sha256])
        #expect(server.finished.map(\.requests) == [scale.cuts + 1])
        let repeated: [[String]] = Array(repeating: ["HEAD", "PATCH"], count: scale.cuts)
        #expect(server.methods.first == "POST" && server.methods.dropFirst().elementsEqual(repeated.joined()))
        #expect(server.intrusions == 0)
        let events = try await scene.events()
        expectSound(events)
        let resumed = events.filter { $0["type"] == "task.didResumeAtOffset" }.map { $0["data"]["fileOffset"].int }
        let appended = server.requests.filter { $0.method == "PATCH" }.map { Int($0.fields["Upload-Offset"] ?? "") }
        Self.expect(resumed, allAmong: appended)
        let seconds = (ContinuousClock.now - began) / .seconds(1)
        print(
            """
            ENDURANCE upload of \(scale.mebibytes) MiB, seed \(scale.seed), \(Int(seconds)) s: \(scale.cuts) \
            interruptions, \(gates.compactMap(\.self).count) of them kills; the server took \(server.bytesReceived) bytes, \
            \(server.bytesReceived - scale.length) of them twice
            """)
    }
}
