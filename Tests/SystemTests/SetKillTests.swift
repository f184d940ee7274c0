import Base
import Core
import Glibc
import TestSupport
import Testing

/// Publication on disk under SIGKILL: a reader that follows `current` sees whole versions alone.
///
/// With `SOAK=1` the service is killed 200 times.
struct SetKillTests {
    private static let kills = getenv("SOAK").map { String(cString: $0) } == "1" ? 200 : 8
    private static let lengths = [0, 10, 5000, 65_536, 65_537, 200_000, 1_000_000]

    private static func seed(_ version: Int, _ file: Int) -> UInt64 { UInt64(version * 100 + file) }

    private static func path(_ file: Int) -> String { file % 2 == 0 ? "f\(file)" : "folder \(file)/f\(file)" }

    @Test func `A reader sees no mixed and no incomplete version, whenever the service is killed`() async throws {
        let root = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(root.path)"])
        expect(
            try await scene.api.put(
                "/v1/sets/data", ["destination": ["root": "out", "path": "sets/data"], "keep": 1000]), 201)
        let isDone = Locked(false)
        async let published = Self.publish(scene, until: { isDone.withLock { $0 } })
        async let read = Self.read(root.file("sets/data"), until: { isDone.withLock { $0 } })
        var random = SeededRandom(seed: 7)
        for _ in 0..<Self.kills {
            // The moment of the kill is random, not a condition.
            try await stays("versions are published", for: .milliseconds(Int.random(in: 20...600, using: &random))) {
                true
            }
            try await scene.service.kill()
            try await scene.service.start()
        }
        isDone.withLock { $0 = true }
        let (versions, reads) = try await (published, read)
        #expect(versions > 1 && reads > 0)
        print("set kills: \(Self.kills) kills, \(versions) versions, \(reads) reads of whole versions")

        expect(try await scene.api.put("/v1/sets/data", ["keep": 1, "grace": 0]), 200)
        try await eventually("nothing but kept versions is left") {
            let set = try await scene.api.get("/v1/sets/data").json
            let names = Swift.Set((set["versions"].array ?? []).compactMap { $0["version"].string })
            let found = Swift.Set(try Self.entries(root.file("sets/data/.versions")))
            return names.count == min(2, versions) && found == names
        }
        #expect(try Self.entries(root.file("sets/data")).sorted() == [".versions", "current"])
    }

    /// Publishes one version after the other.
    ///
    /// - Returns: The number of published versions.
    private static func publish(_ scene: Scene, until isDone: @Sendable () -> Bool) async throws -> Int {
        var version = 0
        while !isDone() {
            version += 1
            for (file, length) in lengths.enumerated() {
                scene.origin.serve(
                    "/\(version)/\(file)", .generated(seed: seed(version, file), length: length))
            }
            let files = lengths.indices.map { file -> JSON in
                [
                    "path": .string(path(file)),
                    "request": ["url": .string(scene.origin.url("/\(version)/\(file)"))],
                ]
            }
            let body: JSON = ["version": .string("\(version)"), "session": "s", "files": .array(files)]
            let address = "/v1/sets/data/versions"
            try await eventually("the version is accepted", within: .seconds(60)) {
                guard let answer = try? await scene.api.post(address, body) else { return false }
                return answer.status == 201 || answer.status == 200
            }
            try await eventually("the version is published", within: .seconds(60)) {
                let state = try? await scene.api.get("\(address)/\(version)").json["state"].string
                #expect(state != "failed")
                return state == "published"
            }
        }
        return version
    }

    /// Reads versions as a program does that resolves `current` once.
    ///
    /// - Returns: The number of read versions.
    private static func read(_ folder: String, until isDone: @Sendable () -> Bool) async throws -> Int {
        var reads = 0
        var last = 0
        while !isDone() {
            await Task.yield()
            guard let target = realpath("\(folder)/current", nil) else {
                #expect(last == 0, "current is gone")
                continue
            }
            defer { free(target) }
            let place = String(cString: target)
            let version = try #require(place.split(separator: "/").last.flatMap { Int($0) })
            #expect(version >= last, "an older version came back")
            for (file, length) in lengths.enumerated() {
                let bytes = readFile("\(place)/\(path(file))")
                #expect(
                    bytes == Content.bytes(seed: seed(version, file), length: length),
                    "file \(file) of version \(version): \(bytes?.count ?? -1) bytes")
            }
            last = version
            reads += 1
        }
        return reads
    }

    private static func entries(_ folder: String) throws -> [String] {
        let directory = try #require(opendir(folder))
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
