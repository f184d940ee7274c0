import Base
import Foundation
import TestSupport
import Testing

/// `urlsession` as a shell calls it, against the service itself.
struct CommandLineTests {
    let service: ServiceProcess
    let origin: OriginServer

    init() async throws {
        // A port that it keeps over restarts.
        service = try await ServiceProcess(["--listen", "127.0.0.1:\(try await Self.freePort())"])
        origin = try OriginServer()
    }

    /// A port of a service's own choice, which is gone when this returns: who kept one and waited for another, as all tests
    /// of the suite would, might wait for ever.
    private static func freePort() async throws -> UInt16 {
        let service = try await ServiceProcess()
        let port = service.port
        try await service.kill()
        return port
    }

    /// What a command prints; throws where it fails.
    @discardableResult
    func call(_ words: String...) async throws -> [String] {
        try await run("", words)
    }

    private var tool: String {
        ServiceProcess.binary.split(separator: "/", omittingEmptySubsequences: false).dropLast()
            .joined(separator: "/") + "/urlsession"
    }

    private func run(_ input: String, _ words: [String]) async throws -> [String] {
        // The shell's "$@" keeps words with spaces whole.
        let output = try await ChildProcess.run(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "/bin/sh", "-c",
                "printf '%s' \"$1\" | { shift; exec \"$@\"; }", "sh", input, tool,
            ] + words)
        return String(decoding: output, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    @Test func `Sessions, tasks and events are shown`() async throws {
        #expect(try await call("open", "s") == ["s\tactive\trunning 0\tcompleted 0"])
        origin.serve("/a", .generated(seed: 3, length: 10_000))
        let folder = TemporaryFolder()
        try await call("download", "s", origin.url("/a"), folder.file("a"))
        #expect(
            try Content.sha256(of: Array(Data(contentsOf: URL(filePath: folder.file("a")))))
                == Content.sha256(seed: 3, length: 10_000))
        #expect(try await call("tasks", "s") == ["1\tsucceeded\t10000\t\(origin.url("/a"))"])
        #expect(try await call("events", "s").map { $0.split(separator: "\t")[1] }.last == "task.didComplete")
        try await call("ack", "s", "3")
        #expect(try await call("events", "s").isEmpty)
    }

    @Test func `A download that failed leaves no file and ends with 1`() async throws {
        try await call("open", "s")
        let folder = TemporaryFolder()
        origin.serve("/page", .text("not here", status: 404))
        let failure = await #expect(throws: ChildProcess.Failed.self) {
            try await call("download", "s", origin.url("/page"), folder.file("a"))
        }
        #expect(failure?.status == 1 << 8 && failure?.errors.contains("404") == true, "\(String(describing: failure))")
        #expect(filesBelow(folder.path).isEmpty)
    }

    @Test func `Sessions are listed to the end`() async throws {
        for number in 1...1001 { _ = try await service.api.put("/v1/sessions/t\(number)", [:]) }
        #expect(try await call("sessions").count == 1001)
    }

    @Test func `Events and launches are listed to the end`() async throws {
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
        // Of all sessions, once the grace of a start is over.
        try await eventually("the launches are made") {
            try await service.api.get("/v1/launches?limit=1000").json["items"].array?.count == 106
        }
        #expect(try await call("launches").count == 106)
    }

    @Test func `Events are followed over a restart of the service`() async throws {
        try await call("open", "s")
        let folder = TemporaryFolder()
        let command = "exec '\(tool)' events s --follow > '\(folder.file("events"))'"
        let follower = try await ChildProcess([
            "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(service.port)", "/bin/sh", "-c", command,
        ])
        func followed() -> Int {
            String(decoding: readFile(folder.file("events")) ?? [], as: UTF8.self).split(separator: "\n").count
        }
        let task: JSON = ["kind": "download", "request": ["url": "https://example.com/"], "state": "suspended"]
        for round in 1...2 {
            _ = try await service.api.post("/v1/sessions/s/tasks", task)
            _ = try await service.api.post("/v1/sessions/s/tasks/cancel")
            try await eventually("the events of round \(round)") { followed() == 2 * round }
            #expect(!follower.hasEnded)
            if round == 1 { try await service.restart() }
        }
    }

    @Test func `A question is answered with a secret from standard input`() async throws {
        try await call("open", "s")
        let receiver = try Receiver()
        _ = try await service.api.patch("/v1/app", ["webhook": ["url": .string(receiver.url)]])
        origin.serve("/a", .text("x"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        try await call("download", "s", origin.url("/a"))
        let line = try await eventually("a question") { try await call("questions").first }
        let words = line.split(separator: "\t").map(String.init)
        #expect(words.count == 5 && words[1] == "task.didReceiveChallenge" && words[2] == "open" && words[3] == "s/1")
        _ = try await run("p\n", ["answer", words[0], "useCredential", "u"])
        try await eventually("the task goes on") { try await call("tasks", "s").first?.contains("succeeded") == true }
        await #expect(throws: ChildProcess.Failed.self) {
            try await call("answer", words[0], "cancelAuthenticationChallenge")
        }
    }

    @Test func `Refresh is set, a fetch simulated and completed`() async throws {
        let receiver = try Receiver()
        _ = try await service.api.patch("/v1/app", ["webhook": ["url": .string(receiver.url)]])
        #expect(try await call("refresh").first?.hasPrefix("never\tavailable\tnext -\t") == true)
        #expect(try await call("refresh", "3600").first?.hasPrefix("3600.0 s\tavailable\tnext 2") == true)
        let launch = try #require(try await call("fetch").first?.split(separator: "\t").first.map(String.init))
        _ = try await receiver.waitForDelivery(type: "app.performFetch")
        try await eventually("it is launched") { try await call("launches").first?.contains("launched") == true }
        #expect(try await call("complete", launch, "newData").first?.contains("completed") == true)
        #expect(try await call("refresh").last?.hasSuffix("\tnewData") == true)
    }

    @Test(arguments: [[], ["nothing"], ["answer", "q"], ["refresh", "often"], ["answer", "q", "useNewRequest"]])
    func `A wrong call is told how it goes`(_ words: [String]) async throws {
        let failure = await #expect(throws: ChildProcess.Failed.self) { try await run("", words) }
        #expect(failure?.status == 64 << 8 && failure?.errors.hasPrefix("usage: urlsession") == true)
    }
}
