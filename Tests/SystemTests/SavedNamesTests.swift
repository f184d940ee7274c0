import Base
import Core
import Foundation
import TestSupport
import Testing

/// The rule for the names of saved files (`docs/webhooks.md`): one table for all three programs that save.
@Suite(.enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not installed"))
struct SavedNamesTests {
    enum Program: String, CaseIterable, Sendable { case python, swift, urlsession }

    /// Names in an event, the content of its task, and the resulting file.
    private static let table: [(suggested: String?, clientTaskId: String?, content: String, file: String)] = [
        ("a.txt", nil, "first", "a.txt"), ("a.txt", nil, "second", "a-2.txt"), ("a.txt", nil, "first", "a.txt"),
        ("a.txt", nil, "third", "a-3.txt"), ("archive.tar.gz", nil, "1", "archive.tar.gz"),
        ("archive.tar.gz", nil, "2", "archive.tar-2.gz"), ("README", nil, "1", "README"),
        ("README", nil, "2", "README-2"),
        ("../../escape.txt", nil, "up", "escape.txt"), ("/etc/passwd", nil, "root", "passwd"),
        ("..\\..\\boot.ini", nil, "windows", "boot.ini"), ("dir/", nil, "folder", "dir"),
        ("///", "slashes", "s", "slashes"),
        ("", "empty", "e", "empty"), (nil, "../above/row 17", "r", "row 17"), (nil, nil, "n", "task-16"),
        ("..", nil, "up", "task-17"), (".", "..", "here", "task-18"), ("...", "/", "dots", "task-19"),
        (".profile", nil, "shell", "_profile"), (".profile", nil, "other", "_profile-2"), ("...x", nil, "x", "_..x"),
        ("a\u{1}b\u{1B}[2J\u{7F}\r\n.txt", nil, "control", "ab[2J.txt"), ("\u{85}\t", "tab\tbed", "c1", "tabbed"),
        ("txt\u{202E}exe.a", nil, "turned", "txtexe.a"), (" spaced . ", nil, "s", "spaced"),
        (" . ", nil, "nothing", "task-27"), ("naïve 日本.pdf", nil, "p", "naïve 日本.pdf"),
        (many("x", 300) + ".tar.gz", nil, "l", many("x", 193) + ".tar.gz"),
        (many("日", 100) + ".txt", nil, "j", many("日", 65) + ".txt"),
        ("\(many("x", 100)).\(many("y", 199))", nil, "h", "_" + many("y", 199)),
        ("a.b.", nil, "trailing", "a.b"), ("%2e%2e%2fx", nil, "percent", "%2e%2e%2fx"), ("-rf", nil, "minus", "-rf"),
    ]

    private static func many(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    /// A real service's responses with the names of the table in its events: the service would have cleaned them
    /// itself.
    private struct Rehearsal: Sendable {
        /// The launch, the events and the lease.
        var (launch, page, lease, completed) = ("", "", "", "")
        /// The tasks and their contents, by number.
        var tasks: [Int: [UInt8]] = [:]
        var contents: [Int: [UInt8]] = [:]

        init() async throws {
            let scene = try await Scene()
            for (index, row) in table.enumerated() {
                let path = "/name-\(index + 1)-"
                scene.origin.serve(path, Resource(.bytes(Array(row.content.utf8))))
                let number = try await scene.download(path, ["clientTaskId": .string("client-\(index + 1)-")])
                try await scene.completed(number)
                tasks[number] = try await scene.api.get("/v1/sessions/s/tasks/\(number)").body
                contents[number] = try await scene.content(number).body
            }
            let inbox = try Receiver()
            try await scene.launches(to: inbox)
            let delivery = try #require(try await inbox.waitForDelivery().first)
            let id = try #require(delivery.id)
            lease = try await scene.api.post("/v1/sessions/s/attachment", ["launchId": .string(id)]).text
            page = try await scene.api.get("/v1/sessions/s/events?after=0&limit=1000").text
            for (index, row) in table.enumerated() {
                let name = "\"suggestedFilename\":\"name-\(index + 1)-\""
                #expect(page.contains(name), "\(page)")
                page = page.replacing(
                    name, with: "\"suggestedFilename\":\(row.suggested.map { JSON.string($0).description } ?? "null")")
                page = page.replacing(
                    "\"clientTaskId\":\"client-\(index + 1)-\",",
                    with: row.clientTaskId.map { "\"clientTaskId\":\(JSON.string($0))," } ?? "")
            }
            // Only a path, so that a program uses its own server.
            let base = "http://127.0.0.1:\(scene.service.port)"
            page = page.replacing(base, with: "")
            launch = String(decoding: delivery.body, as: UTF8.self).replacing(base, with: "")
            let epoch = try JSON(parsing: lease)["epoch"]
            completed = try await scene.api.post("/v1/launches/\(id)/complete", ["epoch": epoch]).text
        }
    }

    /// Responds like the service of a rehearsal. After each completion the same events exist again.
    private struct Service {
        let receiver: Receiver
        private let launch: [UInt8]

        init(_ rehearsal: Rehearsal) throws {
            let isAcknowledged = Locked(false)
            receiver = try Receiver { request in
                let parts = request.target.prefix { $0 != "?" }.split(separator: "/").map(String.init)
                let number = parts.count > 4 ? Int(parts[4]) ?? 0 : 0
                switch (request.method, parts.last ?? "") {
                case ("POST", "attachment"): return Self.answer(Array(rehearsal.lease.utf8))
                case ("POST", "ack"):
                    isAcknowledged.withLock { $0 = true }
                    return .json(["acknowledgedSeq": 99, "lastSeq": 99])
                case ("POST", "complete"):
                    isAcknowledged.withLock { $0 = false }
                    return Self.answer(Array(rehearsal.completed.utf8))
                case ("GET", "events"):
                    let end: JSON = ["items": [], "lastSeq": 99, "acknowledgedSeq": 99, "finished": true]
                    return isAcknowledged.withLock { $0 } ? .json(end) : Self.answer(Array(rehearsal.page.utf8))
                case ("GET", "content"):
                    let bytes = rehearsal.contents[number] ?? []
                    guard request.fields["Range"] != nil else { return Self.answer(bytes) }
                    let range = "bytes 0-\(bytes.count - 1)/\(bytes.count)"
                    return Self.answer(bytes, status: 206, [("Content-Range", range)])
                default: return rehearsal.tasks[number].map { Self.answer($0) } ?? .status(404)
                }
            }
            let text = rehearsal.launch.replacing("\"/v1", with: "\"http://127.0.0.1:\(receiver.port)/v1")
            launch = Array(text.utf8)
        }

        private static func answer(
            _ bytes: [UInt8], status: Int = 200, _ fields: [(String, String)] = []
        ) -> Receiver.Answer {
            var answer = Receiver.Answer.status(status, fields)
            answer.body = bytes
            return answer
        }

        private var completions: Int { receiver.deliveries.count { $0.target.hasSuffix("/complete") } }

        /// Sends the launch like the service, and waits until it is completed.
        func deliver(to port: UInt16) async throws {
            let before = completions
            let id = try #require(try JSON(parsing: launch)["data"]["launchId"].string)
            let timestamp = "\(Int(Date().timeIntervalSince1970))"
            let signature = WebhookSignature.sign(secret: devSecret, id: id, timestamp: timestamp, body: launch)
            let fields = [
                ("webhook-id", id), ("webhook-timestamp", timestamp), ("webhook-signature", try #require(signature)),
            ]
            let answer = try await APIClient(port: port).send("POST", "/", headers: fields, body: launch)
            #expect((200...299).contains(answer.status), "\(answer.status)")
            try await eventually("the launch is completed", within: .seconds(60)) { completions > before }
        }
    }

    @Test(arguments: Program.allCases)
    func `Each program names files by the same table, and saves no file twice`(_ program: Program) async throws {
        let service = try Service(try await Rehearsal())
        let (port, folder) = (try ExampleTests.freePort(), TemporaryFolder())
        let inbox = folder.file("outer/inbox")
        try FileManager.default.createDirectory(atPath: inbox, withIntermediateDirectories: true)
        let process: ChildProcess
        switch program {
        case .python:
            process = try await ExampleTests.start(.python, port: port, service: service.receiver.port, inbox: inbox)
        case .swift:
            process = try await ExampleTests.start(.swift, port: port, service: service.receiver.port, inbox: inbox)
        case .urlsession:
            let own = ServiceProcess.binary.split(separator: "/", omittingEmptySubsequences: false).dropLast()
            process = try await ExampleTests.start(
                [
                    own.joined(separator: "/") + "/urlsession", "receive", "--no-register", "--listen",
                    "127.0.0.1:\(port)", "--save", inbox,
                ], ["URLSESSION_URL": "http://127.0.0.1:\(service.receiver.port)", "URLSESSION_KEY": "dev"], port: port,
                service: service.receiver.port, log: folder.file("log"))
        }
        var expected: [String: String] = [:]
        for row in Self.table { expected[row.file] = row.content }
        for round in 1...2 {
            try await service.deliver(to: port)
            let files = try FileManager.default.subpathsOfDirectory(atPath: folder.file("outer"))
            #expect(Set(files) == Set(expected.keys.map { "inbox/\($0)" } + ["inbox"]), "\(program), launch \(round)")
            for (name, content) in expected {
                #expect(readFile("\(inbox)/\(name)") == Array(content.utf8), "\(program): \(name)")
            }
        }
        withExtendedLifetime(process) {}
    }
}
