import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Transfers

@Suite(.serialized)
struct DownloadTests {
    @Test
    func `Small contents are stored in the database, large ones in files, byte for byte`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let sizes = [0, 1, 1000, 64 * 1024, 64 * 1024 + 1, 3 << 20]
            for (index, size) in sizes.enumerated() {
                stage.origin.serve("/\(index)", .generated(seed: UInt64(index), length: size))
            }
            var tasks: [TaskRecord] = []
            for index in sizes.indices { tasks += try await stage.create(stage.order("/\(index)"), in: session) }
            for (index, task) in tasks.enumerated() {
                let done = try await stage.completed(task)
                #expect(done.outcome == .succeeded)
                #expect(done.result?.progress.attempts.attempts == 1)
                let bytes = try await stage.bytes(done)
                #expect(bytes == Content.bytes(seed: UInt64(index), length: sizes[index]))
                #expect(done.content?.digest.value == Content.sha256(of: bytes))
            }
            #expect(filesBelow(stage.folder.file("data/contents")).count == 2)
            #expect(stage.partialFiles().isEmpty)
            let session2 = try await stage.service.session("s", app: stage.app)
            #expect(session2.counts.succeeded == 6)
            #expect(session2.countOfBytesReceived == Int64(sizes.reduce(0, +)))
        }
    }

    @Test
    func `A truncated download resumes`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let size = 2 << 20
            stage.origin.serve(
                "/a", .generated(seed: 1, length: size),
                turns: [[.cut(after: 1 << 20)], [.cut(after: 100_000, .reset)], [.status(503)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: size))
            #expect(done.result?.progress.attempts.attempts == 4)
            #expect(stage.origin.bytesSent("/a") < size + 200_000)
            let resumptions = try await stage.resumptions(session)
            #expect(resumptions.count == 2)
            #expect(resumptions.allSatisfy { $0.fileOffset > 0 && $0.expectedTotalBytes == Int64(size) })
            #expect(stage.partialFiles().isEmpty)
        }
    }

    @Test(arguments: [-5, 5])
    func `A part that ends before or behind its Content-Range is not the rest of a content`(_ excess: Int) async throws
    {
        try await ServiceStage.run { stage in
            let (size, kept) = (1 << 20, 600_000)
            let resource = Resource.generated(seed: 1, length: size)
            let content = Content.bytes(seed: 1, length: size)
            let head = [
                "HTTP/1.1 206 Partial Content", "ETag: \(resource.etag ?? "")", "Connection: close",
                "Content-Range: bytes \(kept)-\(size - 1)/\(size)", "", "",
            ]
            let part = Array(head.joined(separator: "\r\n").utf8) + (content + [1, 2, 3, 4, 5])[kept..<size + excess]
            stage.origin.serve("/a", resource, turns: [[.cut(after: kept)], [.raw(part)]])
            let task = try await stage.create(stage.order("/a"), in: try await stage.session())[0]
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(try await stage.bytes(done) == content)
            let ranges = stage.origin.requests("/a").map { $0.fields["Range"] }
            #expect(ranges == [nil, "bytes=\(kept)-", excess < 0 ? "bytes=\(size + excess)-" : nil])
        }
    }

    @Test
    func `A resumed part counts as the 200 that it continues, and its digest is checked`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let content = Resource.generated(seed: 1, length: 2 << 20)
            let digest = ContentDigest(algorithm: .sha256, value: content.sha256)
            for expected in [nil, digest] {
                stage.origin.serve("/a", content, turns: [[.cut(after: 1 << 20)]])
                let order = stage.order("/a") {
                    $0.acceptableStatusCodes = [StatusRange(200, 200)]
                    $0.expectedDigest = expected
                }
                let done = try await stage.completed(stage.create(order, in: session)[0])
                #expect(done.outcome == .succeeded)
                #expect(done.result?.response?.statusCode == 206)
                #expect(done.content?.digest.value == content.sha256)
            }
            // A range that the app itself requests is no 200.
            let own = stage.order("/a") {
                $0.acceptableStatusCodes = [StatusRange(200, 200)]
                $0.request.headers.append("Range", "bytes=0-9")
            }
            #expect(try await stage.completed(stage.create(own, in: session)[0]).outcome == .httpError)
        }
    }

    @Test
    func `Resumed segments count as the 200 that they continue`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let (content, gate) = (Resource.generated(seed: 1, length: 8 << 20), Gate())
            stage.origin.serve("/a", content, always: [.holdBody(after: 300_000, gate)])
            let order = stage.order("/a") {
                $0.segments = .count(4)
                $0.acceptableStatusCodes = [StatusRange(200, 200)]
            }
            let task = try await stage.create(order, in: session)[0]
            try await eventually("four connections") { gate.waiting == 4 }
            try await stage.received(1_000_000, of: task)
            _ = try await stage.service.command(.suspend, task: task.id)
            try await eventually("the transfer stops") { await !stage.service.scheduler.isTransferring(task.id) }
            let kept = try await stage.service.task(task.number, in: task.session).progress?.kept.segments?.count
            #expect(kept ?? 0 > 0)
            gate.open()
            _ = try await stage.service.command(.resume, task: task.id)
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == content.sha256)
        }
    }

    @Test
    func `A download of a changed resource restarts, with an event`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let new = Resource.generated(seed: 2, length: 1 << 20)
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20), turns: [[.cut(after: 500_000)], [.become(new)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 2, length: 1 << 20))
            #expect(try await stage.resumptions(session).map(\.fileOffset) == [0])
        }
    }

    @Test
    func `Cancelling a transfer that cannot be resumed leaves no file`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20).with { $0.etag = nil },
                always: [.holdBody(after: 300_000, gate)])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await eventually { !stage.partialFiles().isEmpty }
            let cancelled = try await stage.service.command(.cancel(reason: nil), task: task.id)
            #expect(cancelled.outcome == .cancelled)
            try await stage.waitForNoPartialFiles()
            #expect(try await stage.events(session).map(\.kind) == [.didFinishCollectingMetrics, .didComplete])
            try await eventually { await stage.service.scheduler.isIdle }
        }
    }

    @Test
    func `A cancelled transfer counts as an attempt, with its response and its bytes`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20), always: [.holdBody(after: 300_000, Gate())])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await stage.received(300_000, of: task)
            let result = try #require(try await stage.service.command(.cancel(reason: nil), task: task.id).result)
            #expect(result.response?.statusCode == 200)
            #expect(result.progress.countOfBytesReceived == 300_000)
            #expect(result.progress.attempts.attempts == 1)
            #expect(result.progress.lastAttempt?.error?.code == .cancelled)
            #expect(try await stage.service.session("s", app: stage.app).countOfBytesReceived == 300_000)
        }
    }

    @Test
    func `The bytes of every attempt count, also of the one that is cancelled`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let resource = Resource(.generated(seed: 1, length: 1 << 20))
            stage.origin.serve(
                "/a", resource, turns: [[.cut(after: 300_000)], [.holdBody(after: 200_000, Gate())]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await eventually("the second attempt") { stage.origin.requests("/a").count == 2 }
            try await stage.received(200_000, of: task)
            let result = try #require(try await stage.service.command(.cancel(reason: nil), task: task.id).result)
            #expect(result.progress.countOfBytesReceived == 500_000)
            #expect(try await stage.service.session("s", app: stage.app).countOfBytesReceived == 500_000)
        }
    }

    @Test
    func `Suspension keeps the bytes, and resumption continues from them`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20), turns: [[.holdBody(after: 300_000, gate)]])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await stage.received(300_000, of: task)
            _ = try await stage.service.command(.suspend, task: task.id)
            let kept = try await eventually { () -> Int64? in
                let offset = try await stage.service.task(1, in: session.id).progress?.kept.point?.offset
                return offset.flatMap { $0 > 0 ? $0 : nil }
            }
            #expect(try await stage.service.task(1, in: session.id).phase == .suspended)
            try await stays(for: .milliseconds(200)) { stage.origin.requests.count == 1 }
            _ = try await stage.service.command(.resume, task: task.id)
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(stage.origin.requests[1].fields["Range"] == "bytes=\(kept)-")
            #expect(try await stage.resumptions(session).map(\.fileOffset) == [kept])
        }
    }

    @Test
    func `Suspension and resumption at any moment lose nothing and never get stuck`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: 1 << 20),
                always: [.trickle(size: 50_000, pause: .milliseconds(10))])
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            for _ in 0..<25 {
                _ = try? await stage.service.command(.suspend, task: task.id)
                _ = try? await stage.service.command(.resume, task: task.id)
                try await Task.sleep(for: .milliseconds(7))
            }
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded, "\(done)")
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            try await stage.waitForNoPartialFiles()
            try await eventually { await stage.service.scheduler.isIdle }
        }
    }

    @Test
    func `A new request replaces the request in flight`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), always: [.holdBody(after: 300_000, gate)])
            stage.origin.serve("/b", .generated(seed: 2, length: 1 << 20))
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await eventually { gate.waiting == 1 }
            var changes = TaskChanges()
            changes.request = TransferRequest(url: stage.origin.url("/b"), method: "GET")
            _ = try await stage.service.changeTask(task.id, changes, ifRevision: nil)
            let done = try await stage.completed(task)
            #expect(try await stage.bytes(done) == Content.bytes(seed: 2, length: 1 << 20))
            #expect(done.result?.response?.url == stage.origin.url("/b"))
        }
    }

    @Test(arguments: [false, true])
    func `A redirect to another server restarts a download, unless a digest proves the content`(
        isProven: Bool
    ) async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let (first, second, length) = (try OriginServer(), try OriginServer(), 1 << 20)
            let later = [Misbehaviour.redirect(second.url("/f"))]
            stage.origin.serve("/a", .text("x"), turns: [[.redirect(first.url("/f"))], later, later])
            var resource = Resource(.generated(seed: 1, length: length), etag: "\"1\"")
            first.serve("/f", resource, turns: [[.cut(after: 600_000)]])
            if !isProven { resource.body = .generated(seed: 2, length: length) }
            second.serve("/f", resource)
            let order = stage.order("/a") {
                guard isProven else { return }
                $0.expectedDigest = ContentDigest(algorithm: .sha256, value: Content.sha256(seed: 1, length: length))
            }
            let done = try await stage.completed(try await stage.create(order, in: session)[0])
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: isProven ? 1 : 2, length: length))
            #expect(try await stage.resumptions(session).map(\.cause) == [isProven ? "interrupted" : "resourceChanged"])
            #expect(second.requests("/f").map { $0.fields.contains("Range") } == [isProven])
        }
    }

    @Test
    func `A new URL at another server continues the bytes of the old one`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let (other, gate) = (try OriginServer(), Gate())
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), turns: [[.holdBody(after: 600_000, gate)]])
            other.serve("/b", .generated(seed: 1, length: 1 << 20))
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            try await stage.received(600_000, of: task)
            var changes = TaskChanges()
            changes.request = TransferRequest(url: other.url("/b"), method: "GET")
            _ = try await stage.service.changeTask(task.id, changes, ifRevision: nil)
            let done = try await stage.completed(task)
            gate.open()
            #expect(try await stage.bytes(done) == Content.bytes(seed: 1, length: 1 << 20))
            #expect(other.requests("/b").map { $0.fields.contains("Range") } == [true])
        }
    }

    /// Responses whose pages stall, break off, or are longer than the task's content may be.
    private static func pages(_ status: String, _ field: String) -> [Misbehaviour] {
        let head = "HTTP/1.1 \(status)\r\n\(field)\r\n"
        let short = Array("\(head)Content-Length: 100\r\n\r\nabc".utf8)
        let announced = Array("\(head)Content-Length: 99999999999999\r\n\r\nabc".utf8)
        let endless = Array("\(head)\r\n".utf8) + [UInt8](repeating: 0x61, count: 200_000)
        return [.raw(short, .silence), .raw(short, .finish), .raw(announced, .silence), .raw(endless, .silence)]
    }

    @Test
    func `A redirect is followed whatever becomes of its page`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/b", .text("found"))
            for page in Self.pages("302 Found", "Location: /b") {
                stage.origin.serve("/a", .text("x"), always: [page])
                let task = try await stage.create(stage.order("/a") { $0.maximumContentLength = 50 }, in: session)[0]
                let done = try await stage.completed(task)
                #expect(try await stage.bytes(done) == Array("found".utf8))
                #expect(done.result?.progress.attempts.attempts == 1)
            }
        }
    }

    @Test
    func `A status is retried though its page is longer than the content may be`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            for page in Self.pages("503 Busy", "X-Page: long").dropFirst(2) {
                stage.origin.serve("/a", .text("found"), turns: [[page]])
                let task = try await stage.create(stage.order("/a") { $0.maximumContentLength = 50 }, in: session)[0]
                let done = try await stage.completed(task)
                #expect(try await stage.bytes(done) == Array("found".utf8))
                #expect(done.result?.progress.attempts.attempts == 2)
            }
        }
    }

    @Test
    func `Redirects are followed and recorded`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .text("x"), always: [.redirect("/b", status: 301)])
            stage.origin.serve("/b", .text("x"), always: [.redirect("/c")])
            stage.origin.serve("/c", .text("found"))
            stage.origin.serve("/loop", .text("x"), always: [.redirect("/loop")])
            let tasks = [
                try await stage.create(stage.order("/a"), in: session)[0],
                try await stage.create(stage.order("/loop"), in: session)[0],
            ]
            let done = try await stage.completed(tasks[0])
            #expect(try await stage.bytes(done) == Array("found".utf8))
            #expect(done.result?.progress.redirects.map(\.statusCode) == [301, 302])
            #expect(done.result?.progress.transactions.count == 3)
            let loop = try await stage.completed(tasks[1])
            #expect(loop.result?.error?.code == .httpTooManyRedirects)
            #expect(stage.origin.requests("/loop").count == 17)
        }
    }

    @Test
    func `A final status is an outcome, or a failure if requested`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/404", .text("no", status: 404))
            stage.origin.serve("/big", .generated(seed: 1, length: 300_000).with { $0.status = 410 })
            stage.origin.serve("/304", .generated(seed: 1, length: 10))
            let tasks = try await stage.create(
                stage.order("/404"), stage.order("/404") { $0.failOnHTTPError = true }, stage.order("/big"),
                stage.order("/big") { $0.failOnHTTPError = true },
                stage.order("/304") { $0.ifNoneMatch = "\"v1\"" },
                stage.order("/404") { $0.acceptableStatusCodes = [StatusRange(404, 404)] }, in: session)
            var done: [TaskRecord] = []
            for task in tasks { done.append(try await stage.completed(task)) }
            #expect(done.map(\.outcome) == [.httpError, .failed, .httpError, .failed, .notModified, .succeeded])
            #expect(try await stage.bytes(done[0]) == Array("no".utf8))
            #expect(done[0].result?.error == nil)
            #expect(done[1].result?.error?.code == .badServerResponse)
            #expect(try await stage.bytes(done[2]) == Content.bytes(seed: 1, length: 300_000))
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `A content beyond the maximum length fails, and its file is removed`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", .generated(seed: 1, length: 1 << 20), always: [.chunked(size: 60_000)])
            let task = try await stage.create(stage.order("/a") { $0.maximumContentLength = 200_000 }, in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.result?.error?.code == .dataLengthExceedsMaximum)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `A wrong digest restarts the download once`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            let good = Resource.generated(seed: 2, length: 200_000)
            stage.origin.serve("/once", .generated(seed: 1, length: 200_000), turns: [[], [.become(good)]])
            stage.origin.serve("/never", .generated(seed: 1, length: 200_000))
            let digest = ContentDigest(algorithm: .sha256, value: good.sha256)
            let tasks = try await stage.create(
                stage.order("/once") { $0.expectedDigest = digest },
                stage.order("/never") { $0.expectedDigest = digest },
                in: session)
            #expect(
                try await stage.bytes(try await stage.completed(tasks[0])) == Content.bytes(seed: 2, length: 200_000))
            let failed = try await stage.completed(tasks[1])
            #expect(failed.result?.error?.code == .badServerResponse)
            #expect(failed.result?.error?.underlying?.code == "digest-mismatch")
            #expect(stage.origin.requests("/never").count == 2)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test
    func `Addresses outside the policy are refused without a request`() async throws {
        try await ServiceStage.run(configured: { $0.egress = EgressPolicy() }) { stage in
            let session = try await stage.session()
            let task = try await stage.create(stage.order("/a"), in: session)[0]
            let done = try await stage.completed(task)
            #expect(done.result?.error?.code == .appTransportSecurityRequiresSecureConnection)
            #expect(done.result?.error?.policy == "egress")
            #expect(done.result?.error?.underlying == nil)
            #expect(stage.origin.requests.isEmpty)
        }
    }
}
