import Glibc
import TestSupport
import Testing

/// The output of `urlsession`: written before the service may delete it, and only in permitted places.
extension CommandLineTests {
    /// The result of a command whose standard output is on a full disk.
    private func onFullDisk(_ words: [String]) async throws -> (status: Int32, errors: String) {
        let script = "cd '\(folder.path)'; exec \"$@\" > /dev/full"
        let failed = try await #require(throws: ChildProcess.Failed.self) {
            try await ChildProcess.run(
                [
                    "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "/usr/bin/timeout", "20",
                    "/bin/sh",
                    "-c", script, "sh", Self.tool,
                ] + words, within: .seconds(60))
        }
        return (failed.status >> 8, failed.errors)
    }

    private static let fullDisk = "urlsession: standard output: No space left on device"

    @Test(arguments: [["sessions"], ["sessions", "--json"], ["open", "s"], ["--help"], ["completions", "bash"]])
    func `A result that cannot be written is a failure`(_ words: [String]) async throws {
        try await call("open", "s")
        let ended = try await onFullDisk(words)
        #expect(ended.status == 1 && ended.errors.contains(Self.fullDisk), "\(ended)")
    }

    @Test func `A content that cannot be written to standard output stays with the service`() async throws {
        origin.serve("/a", .generated(seed: 3, length: 100_000))
        let ended = try await onFullDisk(["get", "-o", "-", origin.url("/a")])
        #expect(ended.status == 1 && ended.errors.contains("standard output: No space left on device"), "\(ended)")
        let session = try #require(try await sessions.first)
        try await call("content", session, "1", "-o", "again")
        #expect(fileSHA256(folder.file("again")) == Content.sha256(seed: 3, length: 100_000))
    }

    @Test func `A closed pipe ends the command as usual, and the content stays`() async throws {
        origin.serve("/a", .generated(seed: 3, length: 10_000_000))
        let script = """
            cd '\(folder.path)'; { "$@"; echo $? > status; } | head -c 1
            """
        let output = try await ChildProcess.run(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "/bin/sh", "-c", script, "sh",
                Self.tool, "get", "-o", "-", origin.url("/a"),
            ], within: .seconds(60))
        #expect(output.count == 1)
        let status = try await eventually("the command ends") { readFile(folder.file("status")) }
        #expect(status == Array("\(128 + SIGPIPE)\n".utf8))
        #expect(try await sessions.count == 1)
    }

    @Test func `Events that cannot be written are not acknowledged`() async throws {
        origin.serve("/a", .text("x"))
        try await call("get", "-s", "s", origin.url("/a"))
        let ended = try await onFullDisk(["events", "s", "--follow"])
        #expect(ended.status == 1 && ended.errors.contains(Self.fullDisk), "\(ended)")
        #expect(try await service.api.get("/v1/sessions/s").json["acknowledgedSeq"] == 0)
    }

    // MARK: Syncing

    private static let hasCompiler = access("/usr/bin/cc", X_OK) == 0

    /// The variables with which a command cannot sync paths with an ending.
    ///
    /// - Parameter faults: A folder for the library.
    private func failingSync(of suffix: String, _ faults: TemporaryFolder) async throws -> [String] {
        let library = faults.file("failing-sync.so")
        try await ChildProcess.run(
            [
                "/usr/bin/cc", "-shared", "-fPIC", "-O1", "-o", library, "\(repository)/Tests/Faults/failing-sync.c",
                "-ldl",
            ])
        faults.write([], to: "fail")
        return [
            "LD_PRELOAD=\(library)", "FAILING_SYNC_CONTROL=\(faults.file("fail"))", "FAILING_SYNC_SUFFIX=\(suffix)",
        ]
    }

    @Test(.enabled(if: Self.hasCompiler, "/usr/bin/cc is needed"))
    func `A new folder that could not be synced is a failure before the download`() async throws {
        let faults = TemporaryFolder()
        origin.serve("/a", .text("x"))
        let failed = try await failure(
            "get", "-o", "new/", origin.url("/a"), variables: try await failingSync(of: folder.path, faults))
        #expect(failed.status == 1 && failed.errors.contains("Input/output error"), "\(failed)")
        #expect(try await sessions.isEmpty && origin.requests.isEmpty)
    }

    @Test(.enabled(if: Self.hasCompiler, "/usr/bin/cc is needed"), arguments: ["file", "folder"])
    func `A content that could not be synced stays with the service`(_ what: String) async throws {
        let faults = TemporaryFolder()
        let digest = Content.sha256(seed: 3, length: 100_000)
        let suffix = what == "file" ? ".a.part-\(digest.prefix(16))" : folder.path
        origin.serve("/a", .generated(seed: 3, length: 100_000))
        let failed = try await failure(
            "get", origin.url("/a"), variables: try await failingSync(of: suffix, faults))
        #expect(failed.status == 1 && failed.errors.contains("Input/output error"), "\(failed)")
        #expect(try await sessions.count == 1)
        try await call("get", "--force", origin.url("/a"))
        #expect(fileSHA256(folder.file("a")) == digest && origin.requests.count == 1)
        #expect(try await sessions.isEmpty && filesBelow(folder.path) == ["a"])
    }

    // MARK: Permitted places

    /// A finished download in a session of its own whose metadata names its file.
    private func finished(_ place: String) async throws -> String {
        origin.serve("/a", .text("x"))
        try await call("open", "s")
        let task: JSON = [
            "kind": "download", "request": ["url": .string(origin.url("/a"))],
            "metadata": ["urlsession.output": .string(place)],
        ]
        _ = try await service.api.post("/v1/sessions/s/tasks", task)
        try await eventually("it is done") { try await call("task", "s", "1").contains { $0.contains("It succeeded") } }
        return "s"
    }

    @Test(arguments: [
        "/PLACE/ELSEWHERE/f", "/PLACE/ELSEWHERE/", "../ELSEWHERE/f", "inner/../../ELSEWHERE/f", "link/f", "link/",
    ])
    func `A task cannot choose a file outside the folder of the attached command`(_ place: String) async throws {
        let elsewhere = TemporaryFolder()
        folder.makeFolder("inner")
        #expect(makeSymbolicLink(from: folder.file("link"), to: elsewhere.path))
        let parts = elsewhere.path.split(separator: "/")
        let session = try await finished(
            place.replacing("PLACE", with: parts.dropLast().joined(separator: "/"))
                .replacing("ELSEWHERE", with: parts.last ?? ""))
        let failed = try await failure("attach", session)
        #expect(failed.status == 1 && failed.errors.contains("is not below this folder"), "\(failed)")
        #expect(filesBelow(elsewhere.path).isEmpty && filesBelow(folder.path) == ["link"])
        try await call("attach", session, "-o", "inner/")
        #expect(filesBelow(folder.path).contains("inner/a.txt"))
    }

    @Test(arguments: ["inner/f", "FOLDER/inner/f"])
    func `A file below that folder is allowed`(_ place: String) async throws {
        folder.makeFolder("inner")
        let session = try await finished(place.replacing("FOLDER", with: folder.path))
        try await call("attach", session)
        #expect(filesBelow(folder.path) == ["inner/f"])
    }
}
