import Base
import Foundation
import TestSupport
import Testing

/// The options of `get` and `put`, and the remains of a call.
extension CommandLineTests {
    /// The lines of a command's standard output and standard error, however it ends.
    private func everything(_ words: String..., input: String = "") async throws -> [String] {
        let script = "cd '\(folder.path)'; exec 2>&1; printf '%s' \"$1\" | { shift; \"$@\"; }; echo \"status $?\""
        let output = try await ChildProcess.run(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "HOME=\(folder.path)", "/bin/sh",
                "-c", script, "sh", input, Self.tool,
            ] + words, within: .seconds(60))
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    // MARK: Names of a list

    @Test func `Lines of a list name the files of their URLs, each below the folder`() async throws {
        for name in ["a", "b", "c"] { origin.serve("/\(name)", .text(name)) }
        let list = [
            "# mine", "\(origin.url("/a"))\tdeep/er/one.txt\r", "  \(origin.url("/b"))\t two.txt", origin.url("/c"),
        ]
        folder.write(Array(list.joined(separator: "\n").utf8), to: "list.txt")
        try await call("get", "-i", "list.txt", "-o", "new/")
        #expect(readFile(folder.file("new/deep/er/one.txt")) == Array("a".utf8))
        #expect(readFile(folder.file("new/two.txt")) == Array("b".utf8))
        #expect(Set(filesBelow(folder.file("new"))) == ["deep/er/one.txt", "two.txt", "c.txt"])
        #expect(try await sessions.isEmpty)
    }

    @Test func `An interrupted name is found again by the same command`() async throws {
        origin.serve("/a", .text("a"))
        folder.write(Array("\(origin.url("/a"))\tdeep/one".utf8), to: "list.txt")
        try await call("get", "-i", "list.txt", "--detach")
        try await call("get", "-i", "list.txt")
        #expect(filesBelow(folder.path) == ["deep/one", "list.txt"])
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: [
        ("http://h/a\t../x", "list.txt, line 2: ../x must not lead out of the folder with .."),
        ("http://h/a\t/x", "list.txt, line 2: /x must be a relative path, below the folder of -o"),
        ("http://h/a\t", "list.txt, line 2: the name after the tab is empty"),
        ("http://h/a\tx/", "list.txt, line 2: x/ names a folder, not a file"),
        ("\tx", "list.txt, line 2: the URL is missing"),
        ("ftp://h/a\tx", "list.txt, line 2: ftp://h/a is no URL to transfer"),
        ("http://h/a\tx\nhttp://h/b\tx", "list.txt, line 3: another line has the name x, too"),
    ])
    func `A wrong line is reported with the list's name and its number`(
        _ lines: String, _ text: String
    ) async throws {
        folder.write(Array("# mine\n\(lines)\n".utf8), to: "list.txt")
        let failed = try await failure("get", "-i", "list.txt")
        #expect(failed.status == 2 && failed.errors.hasPrefix("urlsession: \(text)"), "\(failed)")
        #expect(try await sessions.isEmpty)
        let named = try await failure("get", "-i", "list.txt", "-o", "file")
        #expect(named.status == 2 && filesBelow(folder.path) == ["list.txt"])
    }

    @Test func `A list that cannot be read is a failure`() async throws {
        let failed = try await failure("get", "-i", ".")
        #expect(failed.status == 1 && failed.errors == "urlsession: .: Is a directory\n", "\(failed)")
    }

    @Test func `A wrong line of a file of headers is reported without its text`() async throws {
        folder.write(Array("A: 1\n\nsecret\n".utf8), to: "headers")
        let failed = try await failure("get", "-H", "@headers", origin.url("/a"))
        #expect(failed.status == 2 && failed.errors.contains("@headers, line 3 is not NAME: TEXT"), "\(failed)")
        #expect(!failed.errors.contains("secret"))
        #expect(try await sessions.isEmpty)
    }

    // MARK: Options of the session

    @Test func `Options configure the session of the call, which the same command finds again`() async throws {
        let gate = Gate()
        origin.serve("/a", .text("a"), always: [.hold(gate)])
        let words = [
            "get", "--detach", "--tries", "3", "--max-time", "2h", "-j", "2", "--limit-rate", "1.5M", origin.url("/a"),
        ]
        for _ in 1...2 { _ = try await run("", words) }
        _ = try await run("", ["get", "--detach", origin.url("/a")])
        let names = try await sessions
        #expect(names.count == 2)
        let shown = try await names.asyncMap { try await service.api.get("/v1/sessions/\($0)").json["configuration"] }
        let own = try #require(shown.first { $0["bandwidthLimit"] == 1_572_864 })
        #expect(own["retryPolicy"]["maximumAttempts"] == 3 && own["timeoutIntervalForResource"].double == 7200)
        #expect(own["httpMaximumConnectionsPerHost"] == 2)
        let other = try #require(shown.first { $0["bandwidthLimit"] == .null })
        #expect(other["retryPolicy"] == "robust" && other["httpMaximumConnectionsPerHost"] == 6)
        gate.open()
    }

    @Test func `The number of attempts is limited`() async throws {
        origin.serve("/a", .text("away", status: 503))
        let failed = try await failure("get", "--tries", "2", origin.url("/a"))
        #expect(failed.status == 1 && failed.errors.contains("503 Service Unavailable, after 2 attempts"), "\(failed)")
        #expect(origin.requests.count == 2)
    }

    @Test(arguments: [["--tries", "2"], ["--max-time", "1h"], ["-j", "2"], ["--limit-rate", "1k"]])
    func `The configuration of another session is not changed`(_ option: [String]) async throws {
        let failed = try await #require(throws: ChildProcess.Failed.self) {
            try await run("", ["get", "-s", "s", origin.url("/a")] + option)
        }
        #expect(failed.status == 2 << 8 && failed.errors.contains("is for the command's own session"))
        #expect(try await sessions.isEmpty)
    }

    // MARK: Remains of a call

    @Test func `A get whose downloads have all ended leaves no session, and prints a line`() async throws {
        for name in ["a", "b", "c"] { origin.serve("/\(name)", .generated(seed: 1, length: 1_000_000)) }
        let lines = try await everything(
            "get", origin.url("/a"), origin.url("/b"), origin.url("/absent"), origin.url("/c"))
        #expect(lines.last == "status 1")
        #expect(lines.contains { $0.hasPrefix("3 of 4 saved, 3.0 MB") }, "\(lines)")
        #expect(try await sessions.isEmpty && filesBelow(folder.path) == ["a", "b", "c"])
    }

    @Test func `Saved files count as saved when the command is repeated`() async throws {
        origin.serve("/1/a.bin", .generated(seed: 1, length: 10_000))
        origin.serve("/2/a.bin", .generated(seed: 2, length: 10_000))
        let words = ["get", origin.url("/1/a.bin"), origin.url("/2/a.bin"), origin.url("/b")]
        await #expect(throws: ChildProcess.Failed.self) { try await run("", words) }
        #expect(try await sessions.isEmpty && filesBelow(folder.path).count == 2)
        origin.serve("/b", .generated(seed: 3, length: 10_000))
        let lines = try await run("", words)
        #expect(lines.count == 3 && lines.count { $0.hasPrefix("is there: a") } == 2, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("saved b") } && filesBelow(folder.path).count == 3)
        #expect(try await sessions.isEmpty)
    }

    @Test func `A content that the service no longer has is a failure, and get fetches it again`() async throws {
        origin.serve("/a", .generated(seed: 1, length: 10_000))
        try await call("get", "--detach", origin.url("/a"))
        let session = try #require(try await sessions.first)
        try await eventually("it is done") {
            try await service.api.get("/v1/sessions/\(session)/tasks/1").json["state"] == "completed"
        }
        let claim = try await service.api.post("/v1/sessions/\(session)/tasks/1/content/claim")
        #expect(claim.status == 200)
        let failed = try await failure("attach", session)
        #expect(failed.status == 1 && failed.errors.contains("the service no longer has the content"), "\(failed)")
        #expect(filesBelow(folder.path).isEmpty)
        #expect(try await call("get", origin.url("/a")).first?.hasPrefix("saved a (10.0 kB") == true)
        #expect(fileSHA256(folder.file("a")) == Content.sha256(seed: 1, length: 10_000) && origin.requests.count == 2)
        #expect(try await sessions.isEmpty)
    }

    // MARK: Users

    @Test func `A password from standard input is sent to the server, without names and responses`() async throws {
        origin.serve("/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        let refused = try await everything("get", "--user", "u", origin.url("/a"), input: "wrong\n")
        #expect(refused.last == "status 1")
        #expect(refused.contains { $0.hasSuffix("/a: the server refused the password of u") }, "\(refused)")
        #expect(try await sessions.isEmpty && filesBelow(folder.path).isEmpty)
        _ = try await run("wrong\n", ["get", "-d", "-u", "u", origin.url("/a")])
        let session = try #require(try await sessions.first)
        let task = try await service.api.get("/v1/sessions/\(session)/tasks/1")
        #expect(!String(decoding: task.body, as: UTF8.self).contains("dTp3cm9uZw"))
        try await eventually("the password is refused") {
            try await service.api.get("/v1/sessions/\(session)/tasks/1").json["state"] == "completed"
        }
        // The same command with another password finds the session and retries.
        let lines = try await run("p\n", ["get", "-u", "u", origin.url("/a")])
        #expect(lines.count == 1 && lines.first?.hasPrefix("saved a") == true, "\(lines)")
        #expect(try await sessions.isEmpty)
    }

    @Test func `An upload with a refused password is repeated with another`() async throws {
        let refusal = Misbehaviour.status(401, [("WWW-Authenticate", "Basic realm=\"r\"")])
        folder.write(Array("hello".utf8), to: "f")
        for session in [[], ["-s", "s"]] {
            let path = "/up\(session.count)"
            origin.serve(path, .upload(), always: [refusal])
            let words = ["put", "f", origin.url(path), "--user", "u"] + session
            for _ in 1...2 {
                let failed = try await #require(throws: ChildProcess.Failed.self) { try await run("wrong", words) }
                #expect(failed.errors.contains("the server refused the password of u"), "\(failed)")
            }
            origin.serve(path, .upload())
            #expect(try await run("p", words).first?.hasPrefix("sent f to ") == true)
            let sent = origin.requests(path).map { "\($0.fields)" }
            #expect(sent.count > 2 && sent.dropLast().allSatisfy { $0.contains("Basic dTp3cm9uZw==") }, "\(sent)")
            #expect(sent.last?.contains("Basic dTpw") == true, "\(sent)")
        }
        #expect(try await sessions == ["s"])
    }

    @Test(arguments: [["-i", "-", "-u", "u"], ["-H", "@-", "-u", "u", "http://h/"], ["-i", "-", "-H", "@-"]])
    func `Standard input serves one purpose`(_ words: [String]) async throws {
        let failed = try await #require(throws: ChildProcess.Failed.self) {
            try await run("http://h/", ["get"] + words)
        }
        #expect(failed.status == 2 << 8 && failed.errors.contains("standard input cannot be both"), "\(failed)")
    }

    @Test func `A user without a password gets an error that names it`() async throws {
        let failed = try await failure("get", "--user", "u", origin.url("/a"))
        #expect(failed.status == 2 && failed.errors.contains("there is no password on standard input"))
        let both = try await failure("get", "--user", "u:p", origin.url("/a"))
        #expect(both.status == 2 && both.errors.contains("without a colon"))
    }
}

extension [String] {
    fileprivate func asyncMap<Result>(_ transform: (String) async throws -> Result) async throws -> [Result] {
        var results: [Result] = []
        for item in self { results.append(try await transform(item)) }
        return results
    }
}
