import Base
import Core
import Glibc
import TestSupport
import Testing

/// Publication under SIGKILL: a reader that follows the pointer to the current version sees whole versions alone.
///
/// With `SOAK=1` the service is killed 200 times for each destination.
struct SetKillTests {
    private static let isLong = getenv("SOAK").map { String(cString: $0) } == "1"
    private static let lengths = [0, 10, 5000, 65_536, 65_537, 200_000, 1_000_000]

    private static func seed(_ version: Int, _ file: Int) -> UInt64 { UInt64(version * 100 + file) }

    private static func path(_ file: Int) -> String { file % 2 == 0 ? "f\(file)" : "folder \(file)/f\(file)" }

    @Test func `A reader of a folder sees no mixed and no incomplete version`() async throws {
        let root = TemporaryFolder()
        let scene = try await Scene(["--files-root", "out=\(root.path)"])
        let folder = root.file("sets/data")
        let kept = try await Self.publishAndKill(
            scene, into: ["root": "out", "path": "sets/data"], kills: Self.isLong ? 200 : 8
        ) { try Self.version(in: folder) }
        try await eventually("nothing but kept versions is left") {
            Swift.Set(try Self.entries("\(folder)/.versions")) == kept
        }
        #expect(try Self.entries(folder).sorted() == [".versions", "current"])
    }

    @Test(.enabled(if: SeaweedFS.isAvailable, "SeaweedFS is not installed"))
    func `A reader of a bucket sees no mixed and no incomplete version`() async throws {
        let store = try await SharedSeaweedFS.folder()
        let scene = try await Scene(store.setting(), environment: SeaweedFS.environment)
        let kept = try await Self.publishAndKill(
            scene, into: ["bucket": "b", "prefix": "sets/data"], kills: Self.isLong ? 200 : 4
        ) { try await Self.version(in: store, "sets/data/") }
        let names = kept.flatMap { version in
            Self.lengths.indices.map { "sets/data/versions/\(version)/\(Self.path($0))" }
                + ["sets/data/manifests/\(version).json"]
        }
        try await eventually("nothing but kept versions is left") {
            try await Swift.Set(store.keys()) == Swift.Set(names + ["sets/data/current.json"])
        }
        #expect(try await store.uploads() == 0)
    }

    /// Publishes versions and reads them, while the service is killed.
    ///
    /// - Parameter read: Reads the current version and compares its bytes. Returns its name, or `nil` if there is none.
    /// - Returns: The names of the versions that are kept in the end.
    private static func publishAndKill(
        _ scene: Scene, into destination: JSON, kills: Int, read: @escaping @Sendable () async throws -> Int?
    ) async throws -> Swift.Set<String> {
        expect(try await scene.api.put("/v1/sets/data", ["destination": destination, "keep": 1000]), 201)
        let (isDone, versions) = (Locked(false), Locked(0))
        async let published: Void = publish(scene, versions, until: { isDone.withLock { $0 } })
        async let reads = readAll(until: { isDone.withLock { $0 } }, read)
        var random = SeededRandom(seed: 7)
        for _ in 0..<kills {
            // The moment of the kill is random, not a condition.
            try await stays("versions are published", for: .milliseconds(Int.random(in: 20...600, using: &random))) {
                true
            }
            try await scene.service.kill()
            try await scene.service.start()
        }
        try await eventually("two versions are published", within: .seconds(120)) { versions.withLock { $0 } >= 2 }
        isDone.withLock { $0 = true }
        try await published
        print(
            "set kills: \(destination): \(kills) kills, \(versions.withLock { $0 }) versions,",
            "\(try await reads) reads of whole versions"
        )
        expect(try await scene.api.put("/v1/sets/data", ["keep": 1, "grace": 0]), 200)
        return try await eventually("two versions are kept") { () -> Swift.Set<String>? in
            let set = try await scene.api.get("/v1/sets/data").json
            let names = Swift.Set((set["versions"].array ?? []).compactMap { $0["version"].string })
            return names.count == 2 ? names : nil
        }
    }

    /// Publishes one version after the other, and counts them.
    private static func publish(
        _ scene: Scene, _ published: Locked<Int>, until isDone: @Sendable () -> Bool
    ) async throws {
        while !isDone() {
            let version = published.withLock { $0 + 1 }
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
            published.withLock { $0 = version }
        }
    }

    /// - Returns: The number of reads that found a version.
    private static func readAll(
        until isDone: @Sendable () -> Bool, _ read: @Sendable () async throws -> Int?
    ) async throws -> Int {
        var (reads, last) = (0, 0)
        while !isDone() {
            await Task.yield()
            guard let version = try await read() else {
                #expect(last == 0, "the current version is gone")
                continue
            }
            #expect(version >= last, "an older version came back")
            last = version
            reads += 1
        }
        return reads
    }

    /// Reads a version as a program does that resolves `current` once.
    private static func version(in folder: String) throws -> Int? {
        guard let target = realpath("\(folder)/current", nil) else { return nil }
        defer { free(target) }
        let place = String(cString: target)
        let version = try #require(place.split(separator: "/").last.flatMap { Int($0) })
        for file in lengths.indices { compare(readFile("\(place)/\(path(file))"), file, of: version) }
        return version
    }

    /// Reads a version by the manifest that `current.json` names.
    private static func version(in store: BucketFolder, _ prefix: String) async throws -> Int? {
        guard let pointer = try await store.content(prefix + "current.json").map({ try JSON(parsing: $0) }),
            let key = pointer["manifest"].string, let version = pointer["version"].string.flatMap({ Int($0) })
        else { return nil }
        let manifest = try JSON(parsing: try #require(try await store.content(prefix + key)))
        #expect(manifest["versionId"] == pointer["versionId"] && manifest["files"].array?.count == lengths.count)
        for file in lengths.indices {
            compare(try await store.content("\(prefix)versions/\(version)/\(path(file))"), file, of: version)
        }
        return version
    }

    private static func compare(_ bytes: [UInt8]?, _ file: Int, of version: Int) {
        #expect(
            bytes == Content.bytes(seed: seed(version, file), length: lengths[file]),
            "file \(file) of version \(version): \(bytes?.count ?? -1) bytes")
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
