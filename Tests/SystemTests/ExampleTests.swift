import Base
import Core
import Glibc
import TestSupport
import Testing

/// The programs of `examples/`, as a reader runs them.
@Suite(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not installed"))
struct ExampleTests {
    enum Language: String, CaseIterable { case python, swift }

    static let examples = "\(repository)/examples"

    /// A port without a listener.
    static func freePort() throws -> UInt16 {
        let receiver = try Receiver()
        defer { receiver.stop() }
        return receiver.port
    }

    /// Starts a receiver that saves contents below `inbox`.
    static func start(_ language: Language, port: UInt16, service: UInt16, inbox: String) async throws -> ChildProcess {
        let own = ServiceProcess.binary.split(separator: "/", omittingEmptySubsequences: false).dropLast()
        let program =
            switch language {
            case .python: ["/usr/bin/python3", "\(examples)/receiver.py"]
            case .swift: [own.joined(separator: "/") + "/swift-receiver"]
            }
        return try await start(
            program, ["LISTEN": "127.0.0.1:\(port)", "PORT": "\(port)", "INBOX": inbox], port: port, service: service,
            log: "/dev/null")
    }

    /// Starts a program that receives webhooks, and waits until it listens.
    static func start(
        _ program: [String], _ environment: [String: String], port: UInt16, service: UInt16, log: String
    ) async throws -> ChildProcess {
        let process = try await ChildProcess(
            ["/usr/bin/env", "PYTHONDONTWRITEBYTECODE=1", "URLSESSIOND=http://127.0.0.1:\(service)"]
                + environment.map { "\($0.key)=\($0.value)" }
                + ["/bin/sh", "-c", "log=$1; shift; exec \"$@\" >\"$log\" 2>&1", "sh", log] + program)
        try await eventually("it listens") { (try? Socket.connect(port: port)) != nil }
        return process
    }

    @Test func `A receiver has a hundred lines of code`() throws {
        for file in ["receiver.py", "swift-receiver/Sources/receiver/main.swift"] {
            let lines = try #require(readFile("\(Self.examples)/\(file)")).filter { $0 == 0x0A }.count
            #expect(lines > 0 && lines <= 100, "\(file) has \(lines) lines")
        }
    }

    @Test(arguments: Language.allCases)
    func `A receiver drains a session through a restart of the service`(_ language: Language) async throws {
        let servicePort = try Self.freePort()
        let scene = try await Scene(["--listen", "127.0.0.1:\(servicePort)"])
        let (port, inbox) = (try Self.freePort(), TemporaryFolder())
        let receiver = try await Self.start(language, port: port, service: servicePort, inbox: inbox.path)
        expect(
            try await scene.api.patch(
                "/v1/app", ["webhook": ["url": .string("http://127.0.0.1:\(port)/"), "launchDeadline": 5]]),
            200)
        let count = 120
        var orders: [JSON] = []
        for number in 0..<count {
            scene.origin.serve("/file-\(number)", .generated(seed: UInt64(number), length: 2000))
            orders.append(scene.downloadOf("/file-\(number)"))
        }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(orders)]), 201)
        try await eventually("it has begun to drain", within: .seconds(60)) {
            filesBelow(inbox.path).count > 3
        }
        try await scene.service.restart()
        try await eventually("the launch is completed", within: .seconds(90)) {
            try await scene.launches().first?["state"] == "completed"
        }
        for number in 0..<count {
            let bytes = try #require(readFile("\(inbox.path)/file-\(number)"))
            #expect(bytes == Content.bytes(seed: UInt64(number), length: 2000), "file \(number)")
        }
        let session = try await scene.session()
        #expect(session["acknowledgedSeq"].int ?? 0 >= 3 * count, "\(session)")
        withExtendedLifetime(receiver) {}
    }

    @Test(arguments: Language.allCases)
    func `A restarted receiver takes over from the dead one`(_ language: Language) async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", Resource(.bytes(Array("x".utf8))))
        let dead = try Receiver()
        try await scene.launches(to: dead, ["launchDeadline": 5])
        try await scene.completed(try await scene.download("/a", ["clientTaskId": "a"]))
        let delivery = try #require(try await dead.waitForDelivery().first)
        // The first receiver is launched, attaches for long, and dies.
        let lease = try await scene.api.post(
            "/v1/sessions/s/attachment", ["ttl": 900, "launchId": .string(delivery.id ?? "")])
        expect(lease, 201)
        dead.stop()
        let inbox = TemporaryFolder()
        let receiver = try await Self.start(language, port: dead.port, service: scene.service.port, inbox: inbox.path)
        try await eventually("the launch is completed", within: .seconds(60)) {
            try await scene.launches().first?["state"] == "completed"
        }
        #expect(try #require(readFile("\(inbox.path)/a")) == Array("x".utf8))
        let epoch = try #require(lease.json["epoch"].int)
        let late = try await scene.api.post("/v1/sessions/s/events/ack", ["through": 3, "epoch": .integer(epoch)])
        expectProblem(late, 409, "attachment-fenced")
        withExtendedLifetime(receiver) {}
    }

    @Test func `The news feed is fetched conditionally, and its headlines arrive with the session's launch`()
        async throws
    {
        let scene = try await Scene(configuration: nil)
        let port = try Self.freePort()
        let folder = TemporaryFolder()
        func feed(_ titles: [String], etag: String?) -> Resource {
            let items = titles.map { "<item><guid>\($0)</guid><title>\($0)</title></item>" }.joined()
            return Resource(.bytes(Array("<rss><channel><title>n</title>\(items)</channel></rss>".utf8)), etag: etag)
        }
        scene.origin.serve("/feed", feed(["one", "two"], etag: "\"1\""))
        let app = try await Self.start(
            ["/usr/bin/python3", "\(Self.examples)/news-feed/app.py", scene.origin.url("/feed")],
            ["LISTEN": "127.0.0.1:\(port)", "STATE": folder.file("state")], port: port, service: scene.service.port,
            log: folder.file("log"))
        var results = 0
        /// Fetches, and waits for the app's result and for the completion of its session's launch.
        func fetch(_ result: String) async throws {
            expect(try await scene.api.post("/v1/app/background-refresh/simulate"), 202)
            results += 1
            let history = try await eventually("fetch \(results) ends", within: .seconds(60)) { () -> JSON? in
                let history = try await scene.api.get("/v1/app/background-refresh").json["history"]
                return history.array?.count == results && !history[0]["result"].isNull ? history : .none
            }
            #expect(history[0]["result"].string == result, "\(log)")
            try await eventually("its session's launch is completed: \(log)", within: .seconds(60)) {
                let launches = try await scene.launches(of: "news")
                return launches.count == results && launches.allSatisfy { $0["state"] == "completed" }
            }
        }
        var log: String { String(decoding: readFile(folder.file("log")) ?? [], as: UTF8.self) }
        var news: [String] {
            log.split(separator: "\n").filter { $0.hasPrefix("NEW ") }.map { String($0.dropFirst(4)) }
        }

        let refresh = try await scene.api.get("/v1/app/background-refresh").json
        #expect(refresh["minimumBackgroundFetchInterval"].double == 3600 && refresh["nextFetchAt"].string != nil)
        try await fetch("newData")
        try await eventually("the first headlines") { news == ["one", "two"] }
        try await fetch("noData")
        #expect(scene.origin.requests("/feed").last?.fields["If-None-Match"] == "\"1\"")
        scene.origin.serve("/feed", feed(["one", "two", "three"], etag: nil))
        try await fetch("newData")
        try await eventually("the new headline alone") { news == ["one", "two", "three"] }
        // The same bytes without an entity tag are no new data either.
        try await fetch("noData")
        scene.origin.serve("/feed", .text("gone", status: 410))
        try await fetch("failed")
        #expect(news == ["one", "two", "three"], "\(log)")
        withExtendedLifetime(app) {}
    }

    @Test(arguments: Language.allCases)
    func `A receiver accepts only signed webhooks`(_ language: Language) async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"))
        let (port, inbox) = (try Self.freePort(), TemporaryFolder())
        let receiver = try await Self.start(language, port: port, service: scene.service.port, inbox: inbox.path)
        let rotated = try await scene.api.post("/v1/app/webhook/secret/rotate", ["gracePeriod": 0])
        expect(rotated, 200)
        expect(try await scene.api.patch("/v1/app", ["webhook": ["url": .string("http://127.0.0.1:\(port)/")]]), 200)
        let ping = try await scene.api.post("/v1/app/webhook/ping")
        #expect(ping.json["statusCode"] == 401, "\(ping.text)")
        try await scene.completed(try await scene.download("/a"))
        try await eventually("an attempt failed") {
            try await scene.launches().first?["attempts"][0]["statusCode"] == 401
        }
        #expect(filesBelow(inbox.path).isEmpty)
        withExtendedLifetime(receiver) {}
    }
}
