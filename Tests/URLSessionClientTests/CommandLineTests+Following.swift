import Base
import Foundation
import TestSupport
import Testing
import Wire

/// Commands that follow tasks, against a service whose responses the test chooses.
extension CommandLineTests {
    private static func answer(_ shape: some JSONWritable, status: Int = 200) -> Receiver.Answer {
        var answer = Receiver.Answer.status(status)
        answer.body = shape.jsonBytes
        return answer
    }

    /// A task of `http://h/NUMBER`.
    private static func task(_ number: Int64, _ kind: TaskKind, _ change: (inout SessionTask) -> Void) -> SessionTask {
        SessionTask {
            ($0.taskIdentifier, $0.kind, $0.state) = (number, kind, .running)
            $0.originalRequest.url = "http://h/\(number)"
            change(&$0)
        }
    }

    private static let bytes = Array("content".utf8)

    /// A completed download of seven bytes.
    private static func completedDownload(_ change: (inout SessionTask) -> Void = { _ in }) -> SessionTask {
        task(1, .download) {
            ($0.state, $0.outcome) = (.completed, .succeeded)
            let digest = ContentDigest(algorithm: .sha256, value: TestSupport.Content.sha256(of: bytes))
            $0.content = Wire.Content { ($0.length, $0.digest) = (Int64(bytes.count), digest) }
            change(&$0)
        }
    }

    /// A service with one session and these tasks.
    ///
    /// - Parameter respond: The response to a method and a path behind that of the session; `nil` for the usual one. A
    ///   stream of events usually has none.
    private static func service(
        _ tasks: [SessionTask], respond: @escaping @Sendable (_ request: String) -> Receiver.Answer?
    ) throws -> Receiver {
        try Receiver { delivery in
            let path = delivery.target.prefix { $0 != "?" }.split(separator: "/").dropFirst(3).joined(separator: "/")
            let request = "\(delivery.method) \(path)"
            if let answer = respond(request) { return answer }
            switch request {
            case "GET events": return .hang
            case "GET tasks": return answer(Page(items: tasks, nextCursor: nil))
            case "POST tasks/batch": return answer(Batch { $0.items = tasks }, status: 201)
            case "GET tasks/1", "PATCH tasks/1": return answer(tasks[0])
            case "GET ", "PUT ": return answer(Session { $0.identifier = "s" })
            default: return .launched
            }
        }
    }

    @Test func `A task with repeated events is read by one request at a time, and ends once`() async throws {
        let running = [1, 2].map { Self.task($0, .upload) { _ in } }
        let done = [1, 2].map { Self.task($0, .upload) { ($0.state, $0.outcome) = (.completed, .succeeded) } }
        let (gate, isConnected) = (Gate(), Locked(false))
        let events = [1, 1, 2].enumerated().map { index, number in
            Event { ($0.seq, $0.type, $0.taskIdentifier) = (Int64(index + 1), .taskDidComplete, number) }
        }
        let stream = events.flatMap { Array("data: ".utf8) + $0.jsonBytes + Array("\n\n".utf8) }
        let service = try Self.service(running) { request in
            switch request {
            case "GET events":
                let isFirst = isConnected.withLock { isConnected in
                    defer { isConnected = true }
                    return !isConnected
                }
                guard isFirst else { return nil }
                var answer = Receiver.Answer.status(200)
                answer.body = stream
                return answer
            case "GET tasks/1":
                var answer = Self.answer(done[0])
                answer.gate = gate
                return answer
            case "GET tasks/2": return Self.answer(done[1])
            default: return nil
            }
        }
        func reads(_ number: Int) -> Int {
            service.deliveries.count { $0.target == "/v1/sessions/s/tasks/\(number)" }
        }
        let attached = try await background("attach", "s", "--json", "--url", "http://127.0.0.1:\(service.port)")
        // The events are in order, so that those of the first task were handled.
        try await eventually("both tasks are read") { reads(1) > 0 && reads(2) > 0 }
        gate.open()
        #expect(try await attached.end() == 0)
        #expect(attached.output.split(separator: "\n").count == 2, "\(attached.output)")
        #expect(reads(1) == 1 && reads(2) == 1)
    }

    @Test(arguments: [true, false])
    func `A file that appears meanwhile counts as saved if it has the same bytes`(_ isSame: Bool) async throws {
        let (folder, file) = (folder, isSame ? Self.bytes : Array("other".utf8))
        let task = Self.completedDownload { $0.metadata["urlsession.output"] = folder.file("a") }
        let service = try Self.service([task]) { request in
            // The command has not found the file, and saves the content.
            if request == "GET tasks/1" { folder.write(file, to: "a") }
            return nil
        }
        let attach = ["attach", "s", "--url", "http://127.0.0.1:\(service.port)"]
        if isSame {
            #expect(try await run("", attach) == ["is there: a (7 B)"])
        } else {
            let failed = try await #require(throws: ChildProcess.Failed.self) { try await run("", attach) }
            #expect(failed.status == 1 << 8 && failed.errors.contains("--force replaces it"), "\(failed)")
        }
        #expect(readFile(folder.file("a")) == file)
    }

    @Test(arguments: [("watch", "/v1/sessions/s/events?attach=false"), ("attach", "/v1/sessions/s/events")])
    func `Only a command that saves contents attaches to the session`(_ command: String, _ target: String) async throws
    {
        let service = try Self.service([Self.task(1, .download) { _ in }]) { _ in nil }
        let following = try await background(command, "s", "--url", "http://127.0.0.1:\(service.port)")
        try await eventually("the stream") { service.deliveries.contains { $0.target == target } }
        try await following.interrupt()
        #expect(try await following.end() == 2)
    }

    @Test func `A download waits while the service refuses its requests for a time`() async throws {
        let refused = Locked<Set<String>>([])
        let service = try Self.service([Self.completedDownload()]) { request in
            let isFirst = refused.withLock { $0.insert(request).inserted }
            switch request {
            case "PUT " where isFirst:
                var answer = Receiver.Answer.status(429, [("Retry-After", "1")])
                answer.body = Problem(.rateLimited, "Slowly.").jsonBytes
                return answer
            case "POST tasks/batch" where isFirst, "GET tasks/1" where isFirst, "DELETE " where isFirst:
                return Self.answer(Problem(.shuttingDown, "Soon."), status: 503)
            case "GET tasks/1/content":
                var answer = Receiver.Answer.status(206, [("Content-Range", "bytes 0-6/7")])
                answer.body = Self.bytes
                return answer
            default: return nil
            }
        }
        let lines = try await run("", ["get", "http://h/1", "--url", "http://127.0.0.1:\(service.port)"])
        #expect(lines == ["saved 1 (7 B)"] && readFile(folder.file("1")) == Self.bytes)
        let opened = service.deliveries.filter { $0.method == "PUT" }.map(\.time)
        #expect(opened.count == 2 && opened[1] - opened[0] >= .seconds(1))
        #expect(service.deliveries.count { $0.method == "DELETE" } == 2)
    }
}
