import Base
import Foundation
import TestSupport
import Testing

/// `urlsession` as a shell calls it, against the service itself.
struct CommandLineTests {
    let service: ServiceProcess
    let origin: OriginServer
    let folder = TemporaryFolder()

    init() async throws {
        // A port that it keeps across restarts.
        service = try await ServiceProcess(["--listen", "127.0.0.1:\(try Self.freePort())"])
        origin = try OriginServer()
    }

    /// A port that the system assigns to no client, so that it stays free while the service is stopped.
    private static func freePort() throws -> UInt16 { try Socket.listen(port: 0).port }

    /// The output of a command; throws if it fails.
    @discardableResult
    func call(_ words: String...) async throws -> [String] {
        try await run("", words)
    }

    static var tool: String {
        ServiceProcess.binary.split(separator: "/", omittingEmptySubsequences: false).dropLast()
            .joined(separator: "/") + "/urlsession"
    }

    func run(_ input: String, _ words: [String], _ variables: [String] = []) async throws -> [String] {
        // The shell's "$@" keeps words with spaces intact.
        let output = try await ChildProcess.run(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "HOME=\(folder.path)",
            ] + variables + [
                "/bin/sh", "-c", "cd '\(folder.path)'; printf '%s' \"$1\" | { shift; exec \"$@\"; }", "sh", input,
                Self.tool,
            ] + words, within: .seconds(60))
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func `Downloads into a bucket and uploads from a bucket work`() async throws {
        let store = try ObjectStore()
        let service = try await ServiceProcess(
            store.setting("media"), environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
        let url = ["--url", "http://127.0.0.1:\(service.port)"]
        let key = ["URLSESSION_KEY=dev"]
        origin.serve("/a", .text("one"))
        origin.serve("/b", .text("two"))
        let into = ["get"] + url + ["--into", "media/new/"]
        _ = try await run("", into + [origin.url("/a"), origin.url("/b?x=1")], key)
        #expect(store.objects.mapValues(\.bytes) == ["new/a": Array("one".utf8), "new/b": Array("two".utf8)])
        #expect(filesBelow(folder.path) == [])
        _ = try await run("", ["get"] + url + ["s3://media/new/b", "-o", "got"], key)
        #expect(readFile(folder.file("got")) == Array("two".utf8))
        for (words, said) in [
            (["--into", "media", origin.url("/a")], "BUCKET/KEY"),
            (["--into", "media/k", "-o", "f", "http://a/x"], "-o"),
            (["--into", "media/k", "http://a/x", "http://a/y"], "end with /"),
            (["--into", "media/", "http://a/"], "no name"),
        ] {
            let failed = try await #require(throws: ChildProcess.Failed.self) {
                try await run("", ["get"] + url + words, key)
            }
            #expect(failed.errors.contains(said), "\(failed.errors)")
        }
    }

    /// The exit status and the output of a failing command.
    func failure(_ words: String..., variables: [String] = []) async throws -> (status: Int32, errors: String) {
        let failed = try await #require(throws: ChildProcess.Failed.self) { try await run("", words, variables) }
        return (failed.status >> 8, failed.errors)
    }

    /// A command that runs while the test continues.
    final class Background: Sendable {
        private let process: ChildProcess
        private let folder = TemporaryFolder()

        init(_ url: String, _ words: [String]) async throws {
            let script = """
                cd "$1"; shift; echo $$ > '\(folder.file("pid"))'
                env --default-signal=INT "$@" > '\(folder.file("out"))' 2> '\(folder.file("err"))' &
                echo $! > '\(folder.file("pid"))'; wait $!; echo $? > '\(folder.file("status"))'
                """
            process = try await ChildProcess(
                ["/usr/bin/env", "URLSESSION_URL=\(url)", "/bin/sh", "-c", script, "sh"] + words)
        }

        private func text(_ name: String) -> String {
            String(decoding: readFile(folder.file(name)) ?? [], as: UTF8.self)
        }
        var output: String { text("out") }
        var errors: String { text("err") }
        var status: Int32? { Int32(text("status").trimmingCharacters(in: .whitespacesAndNewlines)) }

        private var pid: String { text("pid").trimmingCharacters(in: .whitespacesAndNewlines) }

        /// The CPU time of the command in seconds (`utime` and `stime` of proc(5)).
        var processorTime: Double? {
            let stat = String(decoding: readFile("/proc/\(pid)/stat") ?? [], as: UTF8.self)
            let fields = stat.split(separator: ")").last?.split(separator: " ") ?? []
            guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
            return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
        }

        func interrupt() async throws {
            try await ChildProcess.run(["/bin/kill", "-INT", pid])
        }

        func end() async throws -> Int32 {
            try await eventually("the command ends: \(output) \(errors)") { status }
        }
    }

    func background(_ words: String...) async throws -> Background {
        try await Background("http://127.0.0.1:\(service.port)", [folder.path, Self.tool] + words)
    }

    var sessions: [String] {
        get async throws { try await call("sessions").compactMap { $0.split(separator: "\t").first.map(String.init) } }
    }

    // MARK: get

    @Test func `A download is saved under the server's name, and its session is deleted`() async throws {
        origin.serve(
            "/a", .generated(seed: 3, length: 10_000),
            always: [.header("Content-Disposition", "attachment; filename=\"../b.bin\"")])
        // On a slow machine a duration and a speed follow.
        let lines = try await call("get", origin.url("/a?x=1"))
        #expect(lines.count == 1 && lines.first?.hasPrefix("saved b.bin (10.0 kB") == true)
        #expect(fileSHA256(folder.file("b.bin")) == Content.sha256(seed: 3, length: 10_000))
        #expect(try await sessions.isEmpty && filesBelow(folder.path) == ["b.bin"])
    }

    @Test func `Many downloads are saved in a folder, each in a file of its own`() async throws {
        for number in 1...3 { origin.serve("/\(number)/a.bin", .generated(seed: UInt64(number), length: 1000)) }
        // A repeated URL is no second download.
        let urls = [1, 2, 3, 1].map { origin.url("/\($0)/a.bin") }
        let lines = try await run(
            (["# mine", ""] + urls).joined(separator: "\n"), ["get", "-i", "-", "-o", "new/", "--json"])
        let results = lines.map { (try? JSON(parsing: Array($0.utf8))) ?? .null }
        #expect(results.count == 3 && results.allSatisfy { $0["task"]["outcome"].string == "succeeded" })
        #expect(
            Set(results.compactMap { $0["file"].string })
                == Set(["a", "a-2", "a-3"].map { "\(folder.path)/new/\($0).bin" }))
        #expect(Set(filesBelow(folder.path)).count == 3)
    }

    @Test(arguments: [404, 500]) func `An error leaves no file and the status 1`(_ status: Int) async throws {
        origin.serve("/page", .text("not here", status: status))
        // One attempt only, so that the status remains.
        let session = try await call("open", "s", "--configuration", try configuration(["retryPolicy": "apple"]))
        #expect(session == ["s\tactive\trunning 0\tcompleted 0"])
        let failed = try await failure("get", "-s", "s", origin.url("/page"))
        #expect(failed.status == 1 && failed.errors.contains("the server answered \(status)"), "\(failed)")
        #expect(filesBelow(folder.path) == ["configuration.json"])
        #expect(try await failure("get", "-s", "s", "--save-errors", origin.url("/page")).status == 1)
        #expect(readFile(folder.file("page.txt")) ?? readFile(folder.file("page")) == Array("not here".utf8))
    }

    private func configuration(_ json: JSON) throws -> String {
        folder.write(json.bytes, to: "configuration.json")
        return folder.file("configuration.json")
    }

    @Test func `A failed transfer prints the reason, and the same command retries`() async throws {
        for count in 1...2 {
            let failed = try await failure(
                "get", "--digest", "md5:" + String(repeating: "0", count: 32), origin.url("/absent"))
            #expect(failed.status == 1 && failed.errors.contains("404"), "\(failed)")
            #expect(!failed.errors.contains("explain"), "\(failed)")
            #expect(try await sessions.isEmpty && origin.requests.count == count)
        }
        let failed = try await failure("get", "-s", "s", origin.url("/absent"))
        #expect(failed.errors.contains("urlsession explain s 1"), "\(failed)")
        _ = try await failure("get", "-s", "s", origin.url("/absent"))
        #expect(try await call("explain", "s", "2").contains("It repeats task 1."))
    }

    @Test func `An existing file stays, and --force replaces it without another fetch`() async throws {
        origin.serve("/a", .generated(seed: 4, length: 5000))
        folder.write([1], to: "a")
        let refused = try await failure("get", origin.url("/a"))
        #expect(refused.errors.contains("exists") && !refused.errors.contains("explain"), "\(refused)")
        #expect(readFile(folder.file("a")) == [1])
        #expect(try await failure("get", "-o", "a", origin.url("/a")).errors.contains("exists"))
        #expect(try await failure("get", "-o", "b/a", origin.url("/a")).errors.contains("no such folder"))
        try await call("get", "--force", origin.url("/a"))
        #expect(fileSHA256(folder.file("a")) == Content.sha256(seed: 4, length: 5000))
        #expect(origin.requests.count == 1)
        #expect(try await sessions.isEmpty)
    }

    @Test(arguments: ["ftp://x", "www.example.com", "http://", "https:///a"])
    func `An invalid URL is named, and opens no session`(_ url: String) async throws {
        let failed = try await failure("get", url)
        #expect(failed.status == 2 && failed.errors.hasPrefix("urlsession: \(url) "), "\(failed)")
        #expect(try await sessions.isEmpty)
    }

    @Test func `A session of one's own can be used repeatedly`() async throws {
        origin.serve("/a", .generated(seed: 5, length: 5000))
        for _ in 1...3 { try await call("get", "-s", "nightly", "--force", origin.url("/a")) }
        #expect(origin.requests.count == 3 && filesBelow(folder.path) == ["a"])
        #expect(try await sessions == ["nightly"])
    }

    @Test func `A content is written to standard output`() async throws {
        origin.serve("/a", .text("line 1\nline 2\n"))
        #expect(try await call("get", "-o", "-", origin.url("/a")) == ["line 1", "line 2"])
        #expect(filesBelow(folder.path).isEmpty)
    }

    @Test(arguments: ["get", "attach"]) func `Ctrl-C detaches, and a later command attaches again`(_ way: String)
        async throws
    {
        let gate = Gate()
        origin.serve("/a", .generated(seed: 6, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let first = try await background("get", origin.url("/a"))
        let session = try await eventually("its session") { try await sessions.first }
        try await eventually("its task") { try await call("tasks", session).first?.contains("receiving") == true }
        try await first.interrupt()
        #expect(try await first.end() == 2)
        #expect(first.errors.contains("urlsession attach \(session)") && filesBelow(folder.path).isEmpty)
        gate.open()
        let words = way == "get" ? ["get", origin.url("/a")] : ["attach", session]
        #expect(try await run("", words).first?.hasPrefix("saved a (300 kB") == true)
        #expect(fileSHA256(folder.file("a")) == Content.sha256(seed: 6, length: 300_000))
        #expect(try await sessions.isEmpty && origin.requests.count == 1)
    }

    @Test func `A later command prints the files that were saved before, and gets the rest`() async throws {
        let gate = Gate()
        origin.serve("/a", .generated(seed: 6, length: 3000), always: [.holdBody(after: 2000, gate)])
        origin.serve("/b", .generated(seed: 7, length: 3000))
        let words = ["get", origin.url("/a"), origin.url("/b")]
        let first = try await background("get", origin.url("/a"), origin.url("/b"))
        try await eventually("one is saved") { first.output.contains("saved b") }
        try await first.interrupt()
        #expect(try await first.end() == 2)
        gate.open()
        let lines = try await run("", words)
        #expect(lines.count == 2 && lines.first?.hasPrefix("is there: b") == true, "\(lines)")
        #expect(lines.last?.hasPrefix("saved a") == true && origin.requests.count == 2)
        #expect(filesBelow(folder.path) == ["a", "b"])
    }

    @Test func `A truncated saved file is not mistaken for the content, which stays with the service`() async throws {
        let gate = Gate()
        origin.serve("/a", .generated(seed: 6, length: 3000), always: [.holdBody(after: 2000, gate)])
        origin.serve("/b", .generated(seed: 7, length: 3000))
        let first = try await background("get", origin.url("/a"), origin.url("/b"))
        try await eventually("one is saved") { first.output.contains("saved b") }
        try await first.interrupt()
        #expect(try await first.end() == 2)
        gate.open()
        let cut = Content.bytes(seed: 7, range: 0..<1000)
        folder.write(cut, to: "b")
        let refused = try await failure("get", origin.url("/a"), origin.url("/b"))
        #expect(refused.status == 1 && refused.errors.contains("--force replaces it"), "\(refused)")
        #expect(readFile(folder.file("b")) == cut)
        try await call("get", "--force", origin.url("/a"), origin.url("/b"))
        #expect(fileSHA256(folder.file("b")) == Content.sha256(seed: 7, length: 3000) && origin.requests.count == 2)
    }

    @Test func `The same command finds its last task among thousands`() async throws {
        try await call("open", "s")
        let task: JSON = ["kind": "download", "request": ["url": "https://example.com/"], "state": "suspended"]
        let tasks = JSON.array(Array(repeating: task, count: 1000))
        _ = try await service.api.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": tasks])
        for _ in 1...3 { _ = try await failure("get", "-s", "s", origin.url("/absent")) }
        #expect(try await call("explain", "s", "1003").contains("It repeats task 1002."))
    }

    @Test func `A kill of the service ends neither a download nor the command that waits for it`() async throws {
        let gate = Gate()
        origin.serve("/a", .generated(seed: 7, length: 300_000), turns: [[.holdBody(after: 200_000, gate)]])
        let download = try await background("get", origin.url("/a"))
        try await eventually("it arrives") { !origin.requests.isEmpty }
        try await service.restart()
        gate.open()
        #expect(try await download.end() == 0)
        #expect(fileSHA256(folder.file("a")) == Content.sha256(seed: 7, length: 300_000))
    }

    @Test func `A detached transfer completes later`() async throws {
        origin.serve("/a", .text("x"))
        let line = try await call("get", "--detach", origin.url("/a")).first ?? ""
        let session = try #require(line.split(separator: " ").last { $0.hasPrefix("get-") })
        try await call("watch", String(session))
        #expect(filesBelow(folder.path).isEmpty)
        try await call("attach", String(session))
        #expect(readFile(folder.file("a.txt")) ?? readFile(folder.file("a")) == Array("x".utf8))
    }

    // MARK: put

    @Test func `A file is sent, with the requested options`() async throws {
        origin.serve("/up/f.bin", .upload())
        folder.write(Array("hello".utf8), to: "f.bin")
        #expect(
            try await call("put", "f.bin", origin.url("/up/"), "-H", "X-Test: yes").first?.hasPrefix("sent f.bin to ")
                == true)
        let request = try #require(origin.requests.last)
        #expect(request.method == "PUT" && request.body == Array("hello".utf8))
        #expect("\(request.fields)".contains("X-Test"))
        #expect(try await sessions.isEmpty)
        try await eventually("its body is removed") {
            try await service.api.get("/v1/bodies").json["items"].array?.isEmpty == true
        }
    }

    @Test(arguments: ["-", "/dev/stdin"]) func `A source that can be read only once is refused`(_ file: String)
        async throws
    {
        let failed = try await failure("put", file, origin.url("/up"))
        #expect(failed.status == 2 && failed.errors.contains("save the output of a pipe"), "\(failed)")
    }

    @Test func `A refused upload ends with 1`() async throws {
        origin.serve("/up", .upload(status: 403))
        folder.write(Array("hello".utf8), to: "f.bin")
        for _ in 1...2 {
            let failed = try await failure("put", "f.bin", origin.url("/up?signature=secret"))
            #expect(failed.status == 1 && failed.errors.contains("/up: the server answered 403 Forbidden"), "\(failed)")
        }
        #expect(try await failure("put", "absent", origin.url("/up")).errors.contains("No such file"))
    }

    // MARK: Memory

    /// Two pieces of 4 MiB and the program itself are far below this; a whole transfer in memory is far above.
    private static let bound = 150 << 20

    @Test func `Memory is constant however long a transfer is`() async throws {
        let content = LargeContent(seed: 9, length: 200 << 20)
        origin.serve("/a", Resource(.large(content)))
        origin.serve("/up", .upload())
        for words in [
            ["get", "-o", folder.file("a"), origin.url("/a")], ["put", folder.file("a"), origin.url("/up")],
        ] {
            let process = try await ChildProcess(
                ["/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", Self.tool] + words)
            var peak = 0
            try await eventually("\(words[0]) ends", within: .seconds(180)) {
                peak = max(peak, process.peakMemory ?? 0)
                return process.hasEnded
            }
            #expect((1..<Self.bound).contains(peak), "\(words[0]): \(peak >> 20) MiB")
        }
        #expect(fileLength(folder.file("a")) == content.length && origin.requests.last?.bodyLength == content.length)
    }

    // MARK: Sessions, tasks, events

    @Test func `Sessions, tasks and events are shown`() async throws {
        #expect(try await call("open", "s") == ["s\tactive\trunning 0\tcompleted 0"])
        origin.serve("/a", .generated(seed: 3, length: 10_000))
        try await call("get", "-s", "s", "-o", folder.file("a"), origin.url("/a"))
        #expect(try await call("tasks", "s") == ["1\tsucceeded\t10000\t\(origin.url("/a"))"])
        #expect(try await call("tasks", "s", "--outcome", "failed").isEmpty)
        #expect(try await call("tasks") == ["s\t1\tsucceeded\t10000\t\(origin.url("/a"))"])
        #expect(try await call("tasks", "--outcome", "failed").isEmpty)
        #expect(try await call("tasks", "--search", "/A") == ["s\t1\tsucceeded\t10000\t\(origin.url("/a"))"])
        #expect(try await call("tasks", "s", "--search", "/b").isEmpty)
        #expect(try await call("task", "s", "1").contains { $0.hasPrefix("It succeeded with 200 OK") })
        #expect(try await call("content", "s", "1", "-o", "copy") == ["saved copy (10.0 kB)"])
        #expect(try await call("events", "s").map { $0.split(separator: "\t")[1] }.last == "task.didComplete")
        #expect(
            try await call("events", "s", "--json").allSatisfy { (try? JSON(parsing: Array($0.utf8)))?["seq"] != nil })
        try await call("ack", "s", "3")
        #expect(try await call("events", "s").isEmpty)
        #expect(try await failure("task", "s", "9").errors.contains("there is no such session or task: s 9"))
        try await call("close", "s", "--forget")
        #expect(try await sessions.isEmpty)
    }

    @Test func `An unfinished download is written while it arrives`() async throws {
        try await call("open", "s")
        let gate = Gate()
        let text = String(repeating: "0123456789\n", count: 4000)
        origin.serve("/a", .text(text), always: [.holdBody(after: 30_000, gate)])
        let task: JSON = ["kind": "download", "request": ["url": .string(origin.url("/a"))]]
        _ = try await service.api.post("/v1/sessions/s/tasks", task)
        try await origin.waitForRequests(1)
        async let whole = call("content", "s", "1", "--arriving")
        gate.open()
        #expect(try await whole == text.split(separator: "\n").map(String.init))
    }

    @Test func `Tasks get commands, one by one or all matches`() async throws {
        try await call("open", "s")
        let gate = Gate()
        origin.serve("/a", .text("x"), always: [.hold(gate)])
        for _ in 1...3 {
            let task: JSON = ["kind": "download", "group": "g", "request": ["url": .string(origin.url("/a"))]]
            _ = try await service.api.post("/v1/sessions/s/tasks", task)
        }
        #expect(
            try await call("suspend", "s", "1", "2").map { $0.split(separator: "\t")[1] } == ["suspended", "suspended"])
        #expect(try await failure("content", "s", "1").errors.contains("has no content yet"))
        #expect(try await failure("content", "s", "1", "--arriving", "-o", "file").status == 2)
        #expect(try await call("resume", "s", "--state", "suspended") == ["2 tasks of 2 changed"])
        #expect(try await call("cancel", "s", "--group", "g") == ["3 tasks of 3 changed"])
        #expect(try await failure("cancel", "s").status == 2)
        try await eventually("they are") { try await call("tasks", "s", "--outcome", "cancelled").count == 3 }
        #expect(try await call("retry", "s", "--outcome", "cancelled") == ["3 tasks of 3 changed"])
        gate.open()
    }

    @Test func `The reason of a waiting task is printed`() async throws {
        try await call("open", "s")
        origin.serve("/a", .text("x"), always: [.noAnswer()])
        _ = try await service.api.post(
            "/v1/sessions/s/tasks", ["kind": "download", "request": ["url": .string(origin.url("/a"))]])
        let lines = try await eventually("it waits for the next attempt") {
            let lines = try await call("explain", "s", "1")
            return lines.contains { $0.hasPrefix("It waits: ") }
                && lines.contains { $0.contains("the next one begins") } ? lines : nil
        }
        #expect(lines.first == "Task 1 of s: download of \(origin.url("/a"))")
    }

    @Test func `Sessions are listed completely`() async throws {
        for number in 1...1001 { _ = try await service.api.put("/v1/sessions/t\(number)", [:]) }
        #expect(try await call("sessions").count == 1001)
    }

    @Test func `Events and launches are listed completely`() async throws {
        try await call("open", "s")
        let task: JSON = ["kind": "download", "request": ["url": "https://example.com/"], "state": "suspended"]
        let tasks = JSON.array(Array(repeating: task, count: 510))
        _ = try await service.api.post("/v1/sessions/s/tasks/batch?return=minimal", ["tasks": tasks])
        _ = try await service.api.post("/v1/sessions/s/tasks/cancel")
        #expect(try await call("events", "s").count == 1020)
        for number in 1...105 {
            _ = try await service.api.put("/v1/sessions/t\(number)", [:])
            _ = try await service.api.post("/v1/sessions/t\(number)/tasks", task)
            _ = try await service.api.post("/v1/sessions/t\(number)/tasks/cancel")
        }
        // For all sessions, after the grace period of the start.
        try await eventually("the launches are made") {
            try await service.api.get("/v1/launches?limit=1000").json["items"].array?.count == 106
        }
        #expect(try await call("launches").count == 106)
        #expect(try await call("launches", "--state", "pending,parked", "--kind", "session.handleEvents").count == 106)
        #expect(try await call("launches", "--state", "launched,completed").isEmpty)
        #expect(try await call("tasks", "s", "--outcome", "failed,cancelled", "--state", "completed").count == 510)
        let wrong = try await failure("launches", "--state", "parked,asleep")
        #expect(wrong.status == 2 && wrong.errors.contains("or several with commas: parked,asleep"), "\(wrong.errors)")
        let ofOne = try await call("launches", "--session", "t1")
        let columns = ofOne.first?.split(separator: "\t").map(String.init) ?? []
        #expect(ofOne.count == 1 && columns.count == 7 && columns[4] == "t1" && columns[5].hasSuffix("Z"), "\(ofOne)")
        #expect(columns.last == "-", "\(ofOne)")
    }

    @Test func `Events are followed across a restart of the service`() async throws {
        try await call("open", "s")
        let follower = try await background("events", "s", "--follow")
        func followed() -> Int { follower.output.split(separator: "\n").count }
        let task: JSON = ["kind": "download", "request": ["url": "https://example.com/"], "state": "suspended"]
        for round in 1...2 {
            _ = try await service.api.post("/v1/sessions/s/tasks", task)
            _ = try await service.api.post("/v1/sessions/s/tasks/cancel")
            try await eventually("the events of round \(round)") { followed() == 2 * round }
            #expect(follower.status == nil)
            if round == 1 { try await service.restart() }
        }
        try await eventually("they are acknowledged") {
            try await service.api.get("/v1/sessions/s").json["acknowledgedSeq"].int == 4
        }
    }

    @Test func `Live events of an unreachable service are a failure at once`() async throws {
        let failed = try await failure("events", "s", "--live", "--url", "http://127.0.0.1:1")
        #expect(failed.status == 1 && failed.errors.contains("does not answer"), "\(failed)")
        #expect(try await failure("events", "s", "--live").errors.contains("there is no such session: s"))
    }

    @Test func `Waiting for events uses no CPU`() async throws {
        try await call("open", "s")
        let follower = try await background("events", "s", "--follow")
        try await eventually("it is attached") {
            try await service.api.get("/v1/sessions/s").json["attachment"]["kind"].string == "stream"
        }
        let before = try #require(follower.processorTime)
        try await Task.sleep(for: .seconds(3))
        let after = try #require(follower.processorTime)
        #expect(after - before < 0.25)
    }

    @Test func `A question is answered with a secret from standard input`() async throws {
        try await call("open", "s")
        let receiver = try Receiver()
        _ = try await service.api.patch("/v1/app", ["webhook": ["url": .string(receiver.url)]])
        origin.serve("/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        try await call("get", "--detach", "-s", "s", origin.url("/a"))
        let line = try await eventually("a question") { try await call("questions", "--state", "open,expired").first }
        #expect(try await call("questions", "--state", "answered,expired").isEmpty)
        let words = line.split(separator: "\t").map(String.init)
        #expect(words.count == 5 && words[1] == "task.didReceiveChallenge" && words[2] == "open" && words[3] == "s/1")
        _ = try await run("p\n", ["answer", words[0], "useCredential", "--user", "u"])
        try await eventually("the task continues") { try await call("tasks", "s").first?.contains("succeeded") == true }
        await #expect(throws: ChildProcess.Failed.self) {
            try await call("answer", words[0], "cancelAuthenticationChallenge")
        }
    }

    @Test func `A stored credential is used without a question`() async throws {
        origin.serve("/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        #expect(try await failure("get", origin.url("/a")).errors.contains("401"))
        let url = "http://127.0.0.1:\(origin.port)"
        let line = try await run("p\n", ["credentials", "add", url, "-u", "u", "--realm", "r"]).first
        let identifier = String(try #require(line?.split(separator: "\t").first))
        let stored = "\(identifier)\tu\tHTTPBasic\t127.0.0.1:"
        #expect(try await call("credentials").first?.hasPrefix(stored) == true)
        try await call("get", origin.url("/a"))
        try await call("credentials", "remove", identifier)
        #expect(try await call("credentials").isEmpty)
    }

    // MARK: The app

    @Test func `Refresh is set, and a fetch is simulated and completed`() async throws {
        let receiver = try Receiver()
        try await call("webhook", "set", receiver.url)
        #expect(try await call("refresh").first?.hasPrefix("never\tavailable\tnext -\t") == true)
        #expect(try await call("refresh", "1h").first?.hasPrefix("3600.0 s\tavailable\tnext 2") == true)
        let launch = try #require(try await call("fetch").first?.split(separator: "\t").first.map(String.init))
        _ = try await receiver.waitForDelivery(type: "app.performFetch")
        try await eventually("it is launched") { try await call("launches").first?.contains("launched") == true }
        #expect(try await call("launch", launch).contains { $0.hasPrefix("Attempt 1: ") && $0.contains("204") })
        #expect(try await call("complete", launch, "newData").first?.contains("completed") == true)
        #expect(try await call("refresh").last?.hasSuffix("\tnewData") == true)
    }

    @Test func `Launches of a period are redelivered`() async throws {
        let receiver = try Receiver { _ in .status(503, [("Retry-After", "3600")]) }
        try await call("webhook", "set", receiver.url)
        origin.serve("/a", .text("x"))
        try await call("get", "--detach", "-s", "s", origin.url("/a"))
        try await receiver.waitForDelivery()
        try await eventually("it waits for an hour") {
            try await call("launches").first?.contains("attempts 1") == true
        }
        #expect(
            try await call("webhook", "redeliver", "--since", "1h", "--until", "30m") == ["sent again 0\tmatched 0"])
        #expect(
            try await call("webhook", "redeliver", "--since", "1h", "-s", "s", "--state", "pending")
                == ["sent again 1\tmatched 1"])
        try await receiver.waitForDelivery(count: 2)
        #expect(try await failure("webhook", "redeliver").status == 2)
        #expect(try await failure("webhook", "redeliver", "--since", "yesterday").errors.contains("RFC 3339"))
    }

    @Test func `A launch without a completion is printed with its time limit`() async throws {
        let receiver = try Receiver()
        try await call("webhook", "set", receiver.url, "--deadline", "5s")
        origin.serve("/a", .text("x"))
        try await call("get", "--detach", "-s", "s", origin.url("/a"))
        let launch = try #require(try await receiver.waitForDelivery().first?.id)
        let words = "204 No Content, not completed within 5 s"
        try await eventually("the deadline has passed") {
            try await call("launches").first?.hasSuffix("\t\(words)") == true
        }
        let lines = try await call("launch", launch)
        #expect(lines.contains { $0.hasPrefix("Attempt 1: ") && $0.contains("  \(words), ") }, "\(lines)")
    }

    @Test func `A webhook is set, pinged and paused, and its secret replaced`() async throws {
        let receiver = try Receiver()
        #expect(try await call("webhook", "set", receiver.url, "--deadline", "2m") == ["\(receiver.url)\tenabled"])
        #expect(try await call("webhook", "ping").first?.contains("204") == true)
        let secret = try #require(try await call("webhook", "rotate").first)
        _ = try await call("webhook", "ping")
        #expect(receiver.deliveries.last?.isSigned(with: secret) == true)
        #expect(try await call("webhook", "set", "--state", "paused") == ["\(receiver.url)\tpaused"])
        receiver.respond { _ in .status(500) }
        #expect(try await failure("webhook", "ping").status == 1)
        #expect(try await call("webhook", "set", "-") == ["-\tpaused"])
    }

    @Test func `Waiting for a slow ping uses no CPU`() async throws {
        let receiver = try Receiver { _ in
            var answer = Receiver.Answer.launched
            answer.delay = .seconds(3)
            return answer
        }
        try await call("webhook", "set", receiver.url)
        let (lines, seconds) = try await timed(["webhook", "ping"], port: service.port)
        #expect(lines.contains { $0.contains("204") && $0.contains(", 3") }, "\(lines)")
        #expect(seconds < 1, "\(lines)")
    }

    @Test func `Waiting for a slow command for many tasks uses no CPU`() async throws {
        let slow = try Receiver { request in
            var answer = Receiver.Answer.json(["matched": 1000, "changed": 1000])
            if request.method == "POST" { answer.delay = .seconds(3) }
            return answer
        }
        let (lines, seconds) = try await timed(["suspend", "s", "--all"], port: slow.port)
        #expect(lines.first == "1000 tasks of 1000 changed", "\(lines)")
        #expect(seconds < 0.4, "\(lines)")
    }

    /// The output of a command, and its CPU time in seconds, from the shell's `rusage`.
    private func timed(_ words: [String], port: UInt16) async throws -> (lines: [String], seconds: Double) {
        let script = "exec 2>&1; TIMEFORMAT='%U %S'; time \"$@\""
        let output = try await ChildProcess.run(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(port)", "/bin/bash", "-c", script, "bash", Self.tool,
            ] + words, within: .seconds(60))
        let lines = String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
        let times = lines.last?.split(separator: " ").compactMap { Double($0) } ?? []
        try #require(times.count == 2, "\(lines)")
        return (lines, times.reduce(0, +))
    }

    @Test func `A launch is received, verified, saved and completed`() async throws {
        // A file of another launch stays.
        try FileManager.default.createDirectory(atPath: folder.file("inbox"), withIntermediateDirectories: true)
        folder.write([1], to: "inbox/a.bin")
        let receiving = try await background(
            "receive", "--listen", "127.0.0.1:0", "--save", folder.file("inbox"), "--once")
        let line = try await eventually("it listens") { receiving.output.split(separator: "\n").first.map(String.init) }
        let url = try #require(line.split(separator: " ").last.map(String.init))
        #expect(try await call("webhook") == ["\(url)\tenabled"])
        let port = try #require(UInt16(url.split(separator: ":").last?.prefix { $0 != "/" } ?? ""))
        let forged = try await APIClient(port: port).post(
            "/", ["type": "webhook.ping"],
            headers: [
                ("webhook-id", "x"), ("webhook-timestamp", "\(Int(Date().timeIntervalSince1970))"),
                ("webhook-signature", "v1,AAAA"),
            ])
        #expect(forged.status == 401)
        try await eventually("the delegate receives it") {
            receiving.errors.contains("it is not signed with this secret")
        }
        origin.serve("/a.bin", .generated(seed: 8, length: 5000))
        try await call("open", "s")
        try await call("get", "--detach", "-s", "s", origin.url("/a.bin"), origin.url("/absent"))
        #expect(try await receiving.end() == 0)
        #expect(fileSHA256(folder.file("inbox/a-2.bin")) == Content.sha256(seed: 8, length: 5000))
        #expect(readFile(folder.file("inbox/a.bin")) == [1] && filesBelow(folder.file("inbox")).count == 2)
        #expect(receiving.output.contains("completed lnch_"))
        #expect(try await call("launches").first?.contains("completed") == true)
        #expect(try await call("webhook") == ["-\tenabled"])
    }

    @Test func `A webhook's secret of another form is refused before the webhook is set`() async throws {
        for secret in ["junk", "whsec_", "whsec_AAAA", String(LaunchReceiverTests.secret.dropFirst("whsec_".count))] {
            folder.write(Array(secret.utf8), to: "secret")
            let failed = try await failure("receive", "--listen", "127.0.0.1:0", "--secret-file", "secret")
            #expect(failed.status == 2 && failed.errors.contains("whsec_ and 32 bytes"), "\(secret): \(failed)")
        }
        #expect(try await call("webhook") == ["-\tenabled"])
    }

    @Test func `Another webhook is not replaced unless requested`() async throws {
        try await call("webhook", "set", "http://127.0.0.1:1/")
        #expect(try await failure("receive", "--listen", "127.0.0.1:0").errors.contains("--replace"))
        #expect(try await call("webhook") == ["http://127.0.0.1:1/\tenabled"])
    }

    private static func fields(_ line: String?) -> [String] {
        line.map { $0.split(separator: "\t").map { String($0) } } ?? []
    }

    @Test func `Apps and keys need the operator's key`() async throws {
        #expect(try await failure("apps").status == 4)
        let admin = ["URLSESSION_KEY=dev-admin"]
        let lines = try await run("", ["apps", "add", "com.example.app"], admin)
        let key = try #require(Self.fields(lines.first).last)
        #expect(try await run("", ["app"], ["URLSESSION_KEY=\(key)"]).first == "com.example.app, active")
        let second = try await run("", ["keys", "add", "com.example.app", "--scope", "events"], admin).first
        let identifier = try #require(Self.fields(second).first)
        #expect(try await run("", ["keys", "com.example.app"], admin).contains("\(identifier)\tevents\t-"))
        _ = try await run("", ["keys", "revoke", "com.example.app", identifier], admin)
        let words = ["--max-tasks", "5", "--max-bytes", "1000", "--webhook-url", "https://example.com/", "--refresh"]
        _ = try await run("", ["apps", "set", "com.example.app"] + words + ["denied"], admin)
        let changed = try await service.admin.get("/v1/apps/com.example.app").json
        #expect(changed["limits"]["tasks"] == 5 && changed["limits"]["storedBytes"] == 1000)
        #expect(changed["webhook"]["url"] == "https://example.com/" && changed["backgroundRefreshStatus"] == "denied")
        let cleared = ["--max-tasks", "none", "--max-bytes", "none", "--webhook-url", "-"]
        let row = try await run("", ["apps", "set", "com.example.app"] + cleared, admin).first
        #expect(row?.contains("any number of tasks\tany number of bytes\trefresh denied") == true, "\(row ?? "")")
        let after = try await service.admin.get("/v1/apps/com.example.app").json
        #expect(after["limits"]["storedBytes"] == .null && after["webhook"]["url"] == .null)
        #expect(try await failure("apps", "set", "com.example.app").status == 2)
        _ = try await run("", ["apps", "remove", "com.example.app"], admin)
        #expect(try await run("", ["apps"], admin).count == 1)
    }

    @Test func `Conditions are shown and declared`() async throws {
        let admin = ["URLSESSION_KEY=dev-admin"]
        #expect(try await failure("conditions").status == 4)
        #expect(try await run("", ["conditions"], admin).first == "Network: reachable")
        let text = #"{"network": {"expensive": true}, "windows": [{"from": "01:00", "to": "05:00"}]}"#
        let lines = try await run(text, ["conditions", "set"], admin)
        #expect(lines.first == "Network: reachable, expensive", "\(lines)")
        #expect(lines.last == "Discretionary tasks run: every day from 01:00 to 05:00 UTC", "\(lines)")
        #expect(try await service.admin.get("/v1/system/conditions").json["network"]["expensive"] == true)
        let json = try #require(try await run("", ["conditions", "--json"], admin).first)
        folder.write(Array(json.utf8), to: "conditions.json")
        #expect(try await run("", ["conditions", "set", "conditions.json"], admin) == lines)
        folder.write(Array(#"{"network": {"expensiv": true}}"#.utf8), to: "conditions.json")
        let wrong = try await failure("conditions", "set", "conditions.json", variables: admin)
        #expect(wrong.status == 1 && wrong.errors.hasPrefix("urlsession: conditions.json: "), "\(wrong)")
    }

    @Test func `Nodes are listed, and drained by their names`() async throws {
        let admin = ["URLSESSION_KEY=dev-admin"]
        let nodes = try await run("", ["nodes"], admin).map { $0.split(separator: "\t").map(String.init) }
        let first = try #require(nodes.first)
        #expect(first.count == 6 && first[1] == "active" && first[2] == "api,transfer,launch", "\(first)")
        let drained = try await run("", ["nodes", "drain", first[0]], admin)
        #expect(drained.first?.hasPrefix("\(first[0])\tdraining\t") == true, "\(drained)")
        let wrong = try await failure("nodes", "drain", "none", variables: admin)
        #expect(wrong.status == 1 && wrong.errors.contains("there is no such id: none"), "\(wrong)")
    }

    // MARK: The tool itself

    @Test func `Every command prints its help`() async throws {
        let commands = try await call("--help").filter {
            $0.hasPrefix("  ") && $0.first { $0 != " " }?.isLowercase == true
        }
        #expect(commands.count > 40)
        for words in [["get", "--help"], ["help", "get"], ["webhook", "set", "-h"], ["webhook", "--help"], ["man"]] {
            #expect(try await run("", words).count > 3, "\(words)")
        }
        for words in [["--version"], ["get", "--version"], ["version"]] {
            #expect(try await run("", words).first?.hasPrefix("urlsession ") == true)
        }
    }

    @Test(arguments: [["nothing"], ["answer", "q"], ["refresh", "often"], ["get"], ["events", "s", "--nothing"]])
    func `A wrong call prints its usage`(_ words: [String]) async throws {
        let failed = try await #require(throws: ChildProcess.Failed.self) { try await run("", words) }
        #expect(failed.status == 2 << 8 && failed.errors.contains("--help"))
    }

    @Test func `A wrong key, a missing service and a foreign one are reported in one line`() async throws {
        let wrong = try await failure("sessions", variables: ["URLSESSION_KEY=wrong"])
        #expect(wrong.status == 4 && wrong.errors.contains("URLSESSION_KEY"))
        let absent = try await failure("--url", "http://127.0.0.1:1", "sessions")
        #expect(
            absent.status == 1
                && absent.errors == "urlsession: http://127.0.0.1:1 does not answer; is urlsessiond running there?\n")
        let stranger = try await failure("sessions", "--url", "http://127.0.0.1:\(origin.port)")
        #expect(stranger.status == 1 && stranger.errors.contains("404"))
    }

    @Test func `A service with a certificate of its own is trusted with --ca-file alone`() async throws {
        let (certificate, key) = (folder.file("c.pem"), folder.file("k.pem"))
        try await ChildProcess.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=service.example", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
            certificate,
        ])
        let service = try await ServiceProcess(["--tls-certificate", certificate, "--tls-key", key])
        let words = ["--url", "https://127.0.0.1:\(service.port)", "sessions"]
        let dev = ["URLSESSION_KEY=dev"]
        let refused = try await #require(throws: ChildProcess.Failed.self) { try await run("", words, dev) }
        #expect(refused.status == 1 << 8 && refused.errors.contains("--ca-file"), "\(refused)")
        #expect(try await run("", words + ["--ca-file", "c.pem"], dev).isEmpty)
        #expect(try await run("", words, dev + ["URLSESSION_CA_FILE=\(certificate)"]).isEmpty)
        try FileManager.default.createDirectory(
            atPath: folder.file(".config/urlsession"), withIntermediateDirectories: true)
        folder.write(Array("[own]\nkey = dev\nca-file = \(certificate)\n".utf8), to: ".config/urlsession/config")
        chmod(folder.file(".config/urlsession/config"), 0o600)
        #expect(try await run("", words + ["--profile", "own"]).isEmpty)
        // Streams of events and contents are read over it, too.
        origin.serve("/a", .text("x"))
        _ = try await run("", ["get", "--ca-file", "c.pem", "--url", words[1], origin.url("/a")], dev)
        #expect(readFile(folder.file("a.txt")) ?? readFile(folder.file("a")) == Array("x".utf8))
        for (file, text) in [("absent", "absent: No such file"), ("k.pem", "k.pem has no certificate")] {
            let failed = try await #require(throws: ChildProcess.Failed.self) {
                try await run("", words + ["--ca-file", file], dev)
            }
            #expect(failed.status == 1 << 8 && failed.errors.contains(text), "\(failed)")
        }
    }

    @Test func `Profiles are selected, and readable ones cause a warning`() async throws {
        let configuration = folder.makeFolder("config") + "/urlsession"
        try FileManager.default.createDirectory(atPath: configuration, withIntermediateDirectories: true)
        let own = "url = http://127.0.0.1:\(service.port)\n"
        let text = "[default]\n\(own)key = wrong\n[dev]\n\(own)key = dev\n[away]\nurl = http://h\nkey = wrong\n"
        try Data(text.utf8).write(to: URL(filePath: configuration + "/config"))
        chmod(configuration + "/config", 0o600)
        let variable = "XDG_CONFIG_HOME=\(folder.file("config"))"
        #expect(try await failure("sessions", variables: [variable]).errors.contains("There is no such key"))
        #expect(
            try await run("", ["sessions", "--profile", "dev"], [variable, "URLSESSION_URL=http://127.0.0.1:1"]).isEmpty
        )
        #expect(try await run("", ["profiles"], [variable]) == ["away", "default", "dev"])
        // The default profile's key is not used for a service that only --url or URLSESSION_URL names: the development
        // key is tried there.
        let elsewhere = ["sessions", "--url", "http://127.0.0.1:\(service.port)/"]
        #expect(try await run("", elsewhere, [variable]).isEmpty)
        #expect(try await run("", ["sessions"], [variable, "URLSESSION_PROFILE=away"]).isEmpty)
        #expect(try await failure("sessions", "--profile", "other", variables: [variable]).status == 2)
        chmod(configuration + "/config", 0o644)
        #expect(try await failure("sessions", variables: [variable]).errors.contains("chmod 600"))
    }

    @Test func `Manual pages are valid roff`() async throws {
        try await call("man", "--all", folder.file("man"))
        let pages = filesBelow(folder.file("man"))
        #expect(pages.contains("urlsession.1") && pages.contains("urlsession-webhook-set.1"))
        #expect(try await call("man", "webhook", "set").first?.hasPrefix(".TH URLSESSION\\-WEBHOOK\\-SET 1") == true)
        let service = try await ServiceProcess.run(["man"]).output
        #expect(service.hasPrefix(".TH URLSESSIOND 8") && service.contains("\\-\\-data\\-dir"))
        folder.write(Array(service.utf8), to: "man/urlsessiond.8")
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/groff") else { return }
        for page in pages + ["urlsessiond.8"] {
            let output = try await ChildProcess.run(
                ["/bin/sh", "-c", "/usr/bin/groff -ww -man -Tascii '\(folder.file("man"))/\(page)' 2>&1 >/dev/null"])
            #expect(output.isEmpty, "\(page): \(String(decoding: output, as: UTF8.self))")
        }
    }
}
