import Base
import Core
import Glibc
import TestSupport
import Testing

/// Common programs read a content while it arrives (docs/transfers.md), and the service is killed meanwhile.
///
/// With `SOAK=1` the service is killed ten times.
@Suite(.enabled(if: TestStore.nodes == 1, "the bytes are at the node that transfers them"))
struct ArrivingToolsTests {
    private static let kills = getenv("SOAK").map { String(cString: $0) } == "1" ? 10 : 3
    private static let size = 24 << 20
    private static let bytes = Content.bytes(seed: 1, length: size)
    private static let path = "/v1/sessions/s/tasks/1/content?arriving=1"

    private func scene() async throws -> Scene {
        try await Scene(configuration: ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2]])
    }

    private static func url(_ scene: Scene) -> String { "http://127.0.0.1:\(scene.service.port)\(path)" }

    private static func has(_ program: String) -> Bool { access("/usr/bin/\(program)", X_OK) == 0 }

    /// A range of the content, more often near its beginning, which arrives first.
    private static func range(_ random: inout SeededRandom) -> (start: Int, end: Int) {
        let start = Int.random(in: 0..<(size >> Int.random(in: 0...4, using: &random)), using: &random)
        return (start, min(size, start + Int.random(in: 1...1 << 20, using: &random)))
    }

    /// Kills the service again and again while `read` runs in a loop.
    ///
    /// - Returns: The number of reads.
    private func readBesideKills(
        _ scene: Scene, _ read: @escaping @Sendable (inout SeededRandom) async throws -> Void
    ) async throws -> Int {
        let isDone = Locked(false)
        async let reads = {
            var (count, random) = (0, SeededRandom(seed: 3))
            while !isDone.withLock({ $0 }) {
                try await read(&random)
                count += 1
            }
            return count
        }()
        var random = SeededRandom(seed: 7)
        for _ in 0..<Self.kills {
            // The moment of the kill is random, not a condition.
            try await stays("the content is read", for: .milliseconds(Int.random(in: 50...500, using: &random))) {
                true
            }
            try await scene.service.kill()
            try await scene.service.start()
        }
        #expect(try await scene.completed(1)["outcome"] == "succeeded")
        isDone.withLock { $0 = true }
        return try await reads
    }

    @Test func `Every byte that a reader receives through kills is one of the content, and no cut looks complete`()
        async throws
    {
        let scene = try await scene()
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.size), always: [.trickle(size: 64 << 10, pause: .milliseconds(5))])
        try await scene.download("/a")
        let (whole, tags) = (Locked(0), Locked<Swift.Set<String>>([]))
        let reads = try await readBesideKills(scene) { random in
            let (start, end) = Self.range(&random)
            let headers = [("Range", "bytes=\(start)-\(end - 1)"), ("Prefer", "wait=2")]
            // Without the service there is no connection.
            guard let reader = try? await scene.api.begin("GET", Self.path, headers: headers).follow() else { return }
            let answer = try await reader.end()
            guard answer.status == 206 else { return }
            #expect(answer.body.count <= end - start)
            #expect(answer.body == Array(Self.bytes[start..<start + answer.body.count]))
            #expect(answer.isWhole == (answer.body.count == end - start))
            if answer.isWhole { whole.withLock { $0 += 1 } }
            if let tag = answer.fields["ETag"] { tags.withLock { _ = $0.insert(tag) } }
        }
        print("arriving: \(reads) reads through \(Self.kills) kills, \(whole.withLock { $0 }) of them whole")
        #expect(whole.withLock { $0 } > 0 && tags.withLock { $0.count } == 1)
        let after = try await scene.api.get(Self.path)
        #expect(after.status == 200 && after.body == Self.bytes)
    }

    @Test(.enabled(if: has("curl"), "curl is not installed"))
    func `curl with a range exits with 0 only for all of its bytes`() async throws {
        let (scene, folder) = (try await scene(), TemporaryFolder())
        scene.origin.serve(
            "/a", .generated(seed: 1, length: Self.size), always: [.trickle(size: 64 << 10, pause: .milliseconds(5))])
        try await scene.download("/a")
        let whole = Locked(0)
        _ = try await readBesideKills(scene) { random in
            let (start, end) = Self.range(&random)
            let file = folder.file("part")
            unlink(file)
            let isComplete =
                (try? await ChildProcess.run([
                    "/usr/bin/curl", "-q", "-sS", "-f", "-H", "Authorization: Bearer dev", "-H",
                    "Prefer: wait=2", "-r", "\(start)-\(end - 1)", "-o", file, Self.url(scene),
                ])) != nil
            let bytes = readFile(file) ?? []
            #expect(bytes == Array(Self.bytes[start..<start + bytes.count]))
            if isComplete {
                #expect(bytes.count == end - start)
                whole.withLock { $0 += 1 }
            }
        }
        #expect(whole.withLock { $0 } > 0)
    }

    @Test(.enabled(if: has("ffprobe") && has("ffmpeg"), "ffmpeg is not installed"))
    func `ffprobe reads a film whose index is at its end, before the rest of it has arrived`() async throws {
        let (scene, folder) = (try await scene(), TemporaryFolder())
        let film = folder.file("film.mp4")
        try await ChildProcess.run(
            [
                "/usr/bin/ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc=duration=40:size=1280x720:rate=30",
                "-c:v",
                "mpeg4", "-q:v", "2", film,
            ], within: .seconds(120))
        let bytes = try #require(readFile(film))
        scene.origin.serve(
            "/a", Resource(.bytes(bytes), etag: "\"film\""),
            always: [.trickle(size: 64 << 10, pause: .milliseconds(100))])
        try await scene.download("/a", ["segments": 4])
        let found = try await ChildProcess.run(
            [
                "/usr/bin/ffprobe", "-v", "error", "-headers",
                "Authorization: Bearer dev\r\nPrefer: wait=30\r\n", "-show_entries",
                "format=duration:stream=width,height", "-of", "csv=p=0", Self.url(scene),
            ], within: .seconds(60))
        #expect(String(decoding: found, as: UTF8.self) == "1280,720\n40.000000\n")
        let task = try await scene.task(1)
        #expect(task["state"] == "running", "\(task)")
    }
}
