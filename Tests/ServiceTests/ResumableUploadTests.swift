import Base
import Core
import SQL
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import Transfers

struct ResumableUploadTests {
    /// Content of many bytes that are cheap to produce, each mebibyte different.
    private func write(_ mebibytes: Int, in stage: ServiceStage) -> (name: String, sha256: String) {
        var block = Content.bytes(seed: 5, length: 1 << 20)
        let digest = Digest()
        var bytes: [UInt8] = []
        bytes.reserveCapacity(mebibytes << 20)
        for number in 0..<mebibytes {
            block[0] = UInt8(truncatingIfNeeded: number)
            bytes += block
        }
        digest.update(bytes)
        stage.folder.write(bytes, to: "root/big")
        return ("big", Content.hex(digest.finish()))
    }

    private func offsets(_ server: DraftServer) -> [String] {
        server.requests.filter { $0.method == "PATCH" }.map { $0.fields["Upload-Offset"] ?? "" }
    }

    private let body = Content.bytes(seed: 1, length: 40_000)

    private var sha256: String { Content.sha256(of: body) }

    private func upload(
        _ stage: ServiceStage, _ server: DraftServer, _ path: String = "/up", method: String = "PUT",
        in session: SessionRecord? = nil, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        let owner: SessionRecord
        if let session { owner = session } else { owner = try await stage.session() }
        return try await stage.create(
            .upload, method, server.url(path), in: owner, body: .bytes(body, mediaType: "a/b"), change)
    }

    // MARK: Interruptions

    @Test func `64 MiB with ten interruptions arrive unchanged`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.answer(201, [("X-Target", "yes")], body: "stored")
        let (name, sha256) = write(64, in: stage)
        // The first cut waits until the 104 was read: a reset may discard it.
        let gate = Gate()
        let cuts = [1, 999_999, 5 << 20, 6_291_455, 6_291_457, 8 << 20, 3, 7_777_777, 9 << 20, 2 << 20]
        server.take(
            cuts.enumerated().map { number, cut in
                DraftServer.Turn {
                    $0.cutBody = cut
                    $0.ending = number % 2 == 0 ? .reset : .finish
                    if number == 0 { $0.hold = (cut, gate) }
                }
            })
        let session = try await stage.session()
        let created = try await stage.create(
            .upload, "POST", server.url("/up"), in: session, body: .file(root: "root", path: name))
        try await eventually("the 104 is stored") {
            try await stage.service.task(created.number, in: session.id).progress?.uploadURL != nil
        }
        gate.open()
        let task = try await stage.completed(created, within: .seconds(120))
        #expect(task.outcome == .succeeded)
        #expect(task.result?.response?.statusCode == 201)
        #expect(task.result?.response?.headers["X-Target"] == "yes")
        #expect(task.result?.response?.url == server.url("/up"))
        #expect(task.result?.contentLength == 6)
        #expect(task.result?.progress.countOfBytesSent == 64 << 20)
        #expect(server.finished.map(\.sha256) == [sha256])
        #expect(server.finished.map(\.length) == [64 << 20])
        #expect(server.bytesReceived == 64 << 20)
        #expect(server.intrusions == 0)
        let goingOn: [[String]] = Array(repeating: ["HEAD", "PATCH"], count: 10)
        #expect(server.methods == ["POST"] + goingOn.joined())
        let resumptions = try await stage.resumptions(session)
        #expect(resumptions.map { String($0.fileOffset) } == offsets(server))
        #expect(resumptions.allSatisfy { $0.expectedTotalBytes == 64 << 20 && $0.cause == "interrupted" })
    }

    @Test(arguments: ResumableUpload.Version.allCases)
    func `Each version of the draft resumes`(_ version: ResumableUpload.Version) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer(versions: [version.rawValue])
        let session = try await stage.session()
        // Without a response to its version an upload is a plain one, and the next one tries the next version.
        while try await stage.completed(upload(stage, server, in: session)).number < 4, server.requests.count < 4 {}
        server.take([DraftServer.Turn { $0.cutBody = 12_345 }, DraftServer.Turn { $0.cutBody = 1 }])
        let before = server.requests.count
        let task = try await stage.completed(upload(stage, server, in: session))
        #expect(task.outcome == .succeeded)
        #expect(Array(server.methods.dropFirst(before)) == ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(offsets(server) == ["12345", "12346"])
        #expect(server.finished.allSatisfy { $0.sha256 == sha256 })
        let said = server.requests.dropFirst(before).map { $0.fields["Upload-Draft-Interop-Version"] }
        #expect(Set(said) == ["\(version.rawValue)"])
    }

    @Test func `An interruption at any byte of the response is recovered`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session()
        var tasks: [TaskRecord] = []
        // The 104 and the final answer are about 240 bytes.
        for cut in stride(from: 0, through: 240, by: 6) {
            server.take([DraftServer.Turn { $0.cutAnswer = cut }])
            let task = try await stage.completed(upload(stage, server, "/\(cut)", in: session))
            #expect(task.outcome == .succeeded, "\(cut)")
            tasks.append(task)
        }
        #expect(server.finished.allSatisfy { $0.sha256 == sha256 && $0.length == body.count })
        #expect(Set(server.finished.map(\.path)).count == tasks.count)
        #expect(server.intrusions == 0)
        #expect(server.methods.contains("HEAD"))
    }

    @Test func `Other informational responses are ignored, and progress in a 104 changes nothing`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([
            DraftServer.Turn {
                $0.informational = [(100, []), (102, []), (103, [("Location", "/wrong")]), (199, [])]
                $0.progressEvery = 5000
                $0.cutBody = 21_000
            }, DraftServer.Turn { $0.informational = [(104, [("Upload-Draft-Interop-Version", "8")])] },
        ])
        let task = try await stage.completed(upload(stage, server))
        #expect(task.outcome == .succeeded)
        #expect(offsets(server) == ["21000"])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    @Test func `Bytes that the server lost are sent once more`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([
            DraftServer.Turn {
                $0.cutBody = 30_000
                $0.forgets = 10_000
            }
        ])
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(offsets(server) == ["20000"])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    // MARK: Restarts

    @Test(arguments: ["6", "9", "x"])
    func `A 104 of another version is ignored`(_ version: String) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([
            DraftServer.Turn {
                $0.announcedVersion = version
                $0.cutBody = 20_000
            }
        ])
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "PUT"])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    @Test func `Without a 104 a broken upload restarts, and without resumable uploads the fields are omitted`()
        async throws
    {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let cut = DraftServer.Turn {
            $0.withholds104 = true
            $0.cutBody = 20_000
        }
        server.take([cut])
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "PUT"])
        let off = try await stage.session("off") { $0.resumableUploads = .off }
        server.take([cut])
        #expect(try await stage.completed(upload(stage, server, in: off)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "PUT", "PUT", "PUT"])
        let said = server.requests.map { request in
            request.fields.fields.contains { $0.name.asciiLowercased.hasPrefix("upload-") }
        }
        #expect(said == [true, true, false, false])
        #expect(try await stage.resumptions(off).isEmpty)
    }

    @Test(arguments: [404, 410, 405])
    func `If the server lost the upload, it restarts from the snapshot`(_ status: Int) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        server.answerOffsets([(status, [])])
        let session = try await stage.session()
        #expect(try await stage.completed(upload(stage, server, in: session)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "HEAD", "PUT"])
        #expect(server.finished.map(\.sha256) == [sha256])
        let resumptions = try await stage.resumptions(session)
        #expect(resumptions.map(\.fileOffset) == [0])
        #expect(resumptions.map(\.cause) == ["uploadResourceGone"])
    }

    @Test func `A server that always loses the upload ends the attempts`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take(Array(repeating: DraftServer.Turn { $0.cutBody = 20_000 }, count: 50))
        server.answerOffsets(Array(repeating: (404, []), count: 50))
        let task = try await stage.completed(upload(stage, server))
        #expect(task.outcome == .failed)
        #expect(server.finished.isEmpty)
        #expect(server.requests.count <= 10)
    }

    @Test func `A wrong offset is queried again, one beyond the end fails`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        server.answerOffsets([(204, [("Upload-Offset", "19999"), ("Upload-Complete", "?0")])])
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(server.finished.map(\.sha256) == [sha256])
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        server.answerOffsets([(204, [("Upload-Offset", "40001")])])
        let task = try await stage.completed(upload(stage, server, "/two"))
        #expect(task.outcome == .failed)
        #expect(task.result?.error?.code == .cannotParseResponse)
    }

    @Test func `Appends that never complete the upload are attempts`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session {
            $0.retryPolicy = .custom(
                RetryPolicy.Settings(maximumAttempts: 3, initialDelay: 0.05, maximumDelay: 0.1))
        }
        let incomplete = DraftServer.Turn { $0.status = (204, [("Upload-Complete", "?0")]) }
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }] + Array(repeating: incomplete, count: 50))
        let task = try await stage.completed(upload(stage, server, in: session))
        #expect(task.outcome == .failed)
        #expect(task.result?.error?.code == .badServerResponse)
        #expect(task.result?.progress.attempts.attempts == 3)
        let appends: [[String]] = Array(repeating: ["HEAD", "PATCH"], count: 4)
        #expect(server.methods == ["PUT"] + appends.joined())
    }

    @Test func `An upload resource that moves to its own URL without end restarts the upload`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        server.redirect("/uploads/1", to: "/uploads/1")
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(server.methods == ["PUT"] + Array(repeating: "HEAD", count: Redirect.limit + 1) + ["PUT"])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    @Test func `Faults during a query are retried`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([
            DraftServer.Turn { $0.cutBody = 20_000 },
            DraftServer.Turn { $0.status = (503, [("Upload-Complete", "?0")]) },
        ])
        server.answerOffsets([(0, []), (503, []), (500, [])])
        #expect(try await stage.completed(upload(stage, server)).outcome == .succeeded)
        #expect(server.methods == ["PUT", "HEAD", "HEAD", "HEAD", "HEAD", "PATCH", "HEAD", "PATCH"])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    // MARK: Responses

    @Test(arguments: [422, 503, 404])
    func `The target's response is the task's, whatever its status`(_ status: Int) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        server.answer(status, [("X-Target", "yes")], body: "no")
        let task = try await stage.completed(upload(stage, server))
        #expect(task.outcome == .httpError)
        #expect(task.result?.response?.statusCode == status)
        #expect(task.result?.response?.headers["X-Target"] == "yes")
        #expect(server.methods == ["PUT", "HEAD", "PATCH"])
    }

    @Test(arguments: [0, 15_000])
    func `A refusal within the body is the response`(_ after: Int) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let (name, _) = write(8, in: stage)
        let session = try await stage.session()
        for (number, withholds104) in [true, false].enumerated() {
            server.take([
                DraftServer.Turn {
                    $0.withholds104 = withholds104
                    $0.early = (after, 413, [("X-Limit", "small")])
                }
            ])
            let task = try await stage.run(
                .upload, "PUT", server.url("/up"), in: session, body: .file(root: "root", path: name))
            #expect(task.outcome == .httpError)
            #expect(task.result?.response?.statusCode == 413)
            #expect(task.result?.response?.headers["X-Limit"] == "small")
            #expect(server.requests.count == number + 1)
        }
    }

    @Test(arguments: [307, 308])
    func `A redirect keeps method and body, and the target's upload resource is used`(_ status: Int) async throws {
        let stage = try await ServiceStage.start()
        let (server, first) = (try DraftServer(), try DraftServer())
        first.redirect("/old", to: server.url("/up"), status: status)
        server.take([DraftServer.Turn { $0.cutBody = 20_000 }])
        let task = try await stage.completed(
            upload(stage, first, "/old", method: "POST") {
                $0.request.headers.set("Authorization", "Bearer canary")
            })
        #expect(task.outcome == .succeeded)
        #expect(first.methods == ["POST"])
        #expect(server.methods == ["POST", "HEAD", "PATCH"])
        #expect(server.requests.map { $0.fields["Authorization"] } == [nil, nil, nil])
        #expect(server.finished.map(\.sha256) == [sha256])
    }

    @Test func `Secrets are sent only to an upload resource of their own origin`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session()
        for location in [nil, "http://localhost:\(server.port)/uploads/2"] {
            server.take([
                DraftServer.Turn {
                    $0.location = location
                    $0.cutBody = 20_000
                }
            ])
            let task = try await upload(stage, server, in: session) {
                $0.request.headers.set("Authorization", "Bearer canary")
                $0.request.headers.set("If-Match", "\"x\"")
            }
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
        #expect(server.methods == ["PUT", "HEAD", "PATCH", "PUT", "HEAD", "PATCH"])
        let canary: String? = "Bearer canary"
        let shown: [String?] = [canary, canary, canary, canary, nil, nil]
        #expect(server.requests.map { $0.fields["Authorization"] } == shown)
        let conditions: [Bool] = server.requests.map { $0.fields["If-Match"] != nil }
        #expect(conditions == [true, false, false, true, false, false])
        let types: [String?] = server.requests.map { $0.fields["Content-Type"] }
        #expect(types.count { $0 == "a/b" } == 2)
    }

    // MARK: Stopping

    @Test func `A cancelled upload is deleted at its server, whether it was in flight or not`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session { $0.bandwidthLimit = 2000 }
        let active = try await upload(stage, server, in: session)
        try await eventually("the 104 is stored") {
            try await stage.service.task(active.number, in: session.id).progress?.uploadURL != nil
        }
        _ = try await stage.service.command(.cancel(reason: nil), task: active.id)
        try await eventually("the deletion") { server.deleted == ["/uploads/1"] }

        let waiting = try await upload(stage, server, in: session)
        try await eventually("the 104 is stored") {
            try await stage.service.task(waiting.number, in: session.id).progress?.uploadURL != nil
        }
        _ = try await stage.service.command(.suspend, task: waiting.id)
        _ = try await stage.service.command(.cancel(reason: nil), task: waiting.id)
        try await eventually("the deletion") { server.deleted == ["/uploads/1", "/uploads/2"] }
        #expect(server.requests.filter { $0.method == "DELETE" }.allSatisfy { $0.path.hasPrefix("/uploads/") })
    }

    @Test(arguments: [false, true])
    func `The uploads of a deleted session or app are deleted at their server`(_ deletesApp: Bool) async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session { $0.bandwidthLimit = 2000 }
        let (active, waiting) = (
            try await upload(stage, server, in: session), try await upload(stage, server, in: session)
        )
        for task in [active, waiting] {
            try await eventually("the 104 is stored") {
                try await stage.service.task(task.number, in: session.id).progress?.uploadURL != nil
            }
        }
        _ = try await stage.service.command(.suspend, task: waiting.id)
        if deletesApp {
            try await stage.service.deleteApp(stage.app)
        } else {
            _ = try await stage.service.deleteSession(session.id)
        }
        try await eventually("the deletions") { Set(server.deleted) == ["/uploads/1", "/uploads/2"] }
        #expect(server.methods.count { $0 == "DELETE" } == 2)
    }

    @Test func `A suspended upload resumes, another URL restarts it`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session { $0.bandwidthLimit = 4000 }
        let task = try await upload(stage, server, in: session)
        try await eventually("bytes arrive") { server.bytesReceived > 0 }
        try await eventually("the 104 is stored") {
            try await stage.service.task(task.number, in: session.id).progress?.uploadURL != nil
        }
        _ = try await stage.service.command(.suspend, task: task.id)
        try await eventually("the transfer stops") { await !stage.service.scheduler.isTransferring(task.id) }
        _ = try await stage.service.command(.resume, task: task.id)
        try await eventually("an append") { server.methods.contains("PATCH") }
        var changes = TaskChanges()
        changes.request = TransferRequest(url: server.url("/other"), method: "PUT")
        _ = try await stage.service.changeTask(task.id, changes, ifRevision: nil)
        _ = try await stage.service.changeSession(
            session.id, description: nil, bandwidthLimit: .some(nil), ifRevision: nil)
        #expect(try await stage.completed(task).outcome == .succeeded)
        #expect(server.finished.map(\.path) == ["/other"])
        #expect(server.finished.map(\.sha256) == [sha256])
        #expect(server.methods == ["PUT", "HEAD", "PATCH", "PUT"])
    }

    @Test func `An upload resumes after a restart of the service`() async throws {
        let folder = TemporaryFolder()
        let server = try DraftServer()
        let first = try await ServiceStage.start(folder: folder)
        let task = try await upload(first, server, in: try await first.session { $0.bandwidthLimit = 8000 })
        try await eventually("bytes arrive") { server.bytesReceived > 10_000 }
        await first.stop()
        let second = try await ServiceStage.start(folder: folder)
        #expect(try await second.completed(task).outcome == .succeeded)
        #expect(server.methods == ["PUT", "HEAD", "PATCH"])
        #expect(server.finished.map(\.sha256) == [sha256])
        await second.stop()
    }
    @Test func `The rest of a body is sent only while the bytes before it are unchanged`() async throws {
        let stage = try await ServiceStage.start()
        let server = try DraftServer()
        let session = try await stage.session { $0.bandwidthLimit = 8000 }
        let task = try await upload(stage, server, in: session)
        try await eventually("bytes arrive") { server.bytesReceived > 10_000 }
        _ = try await stage.service.command(.suspend, task: task.id)
        try await eventually("the transfer stops") { await !stage.service.scheduler.isTransferring(task.id) }
        var damaged = body
        damaged[0] ^= 1
        try await stage.service.store.database.write { [damaged] in
            try $0.execute("UPDATE body SET bytes = ?1", damaged)
        }
        _ = try await stage.service.changeSession(
            session.id, description: nil, bandwidthLimit: .some(nil), ifRevision: nil)
        _ = try await stage.service.command(.resume, task: task.id)
        let done = try await stage.completed(task)
        #expect(done.outcome == .failed && done.result?.error?.underlying?.code == "body-damaged")
        // The difference may be found before the rest is requested.
        let (asked, rest) = (server.methods.prefix(2), server.methods.dropFirst(2))
        #expect(server.finished.isEmpty && asked == ["PUT", "HEAD"] && rest.allSatisfy { $0 == "PATCH" })
        await stage.stop()
    }
}
