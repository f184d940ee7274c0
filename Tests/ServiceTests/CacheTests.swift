import Base
import Core
import Formats
import Foundation
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// The cache and single flight, against an origin that counts its responses.
struct CacheTests {
    private static let size = 1 << 20

    private static func resource(_ fields: KeyValuePairs<String, String> = [:], seed: UInt64 = 1) -> Resource {
        var resource = Resource.generated(seed: seed, length: size)
        for field in fields { resource.fields.append(field.key, field.value) }
        return resource
    }

    private func session(
        _ stage: ServiceStage, _ policy: CachePolicy = .useProtocolCachePolicy, _ name: String = "s",
        of app: AppID? = nil
    ) async throws -> SessionRecord {
        try await stage.session(name, of: app) { $0.requestCachePolicy = policy }
    }

    private func expect(
        _ task: TaskRecord, _ status: CacheStatus?, _ stage: ServiceStage,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        #expect(task.outcome == .succeeded, sourceLocation: sourceLocation)
        #expect(task.result?.cacheStatus == status, sourceLocation: sourceLocation)
        let bytes = try await stage.bytes(task)
        #expect(bytes == Content.bytes(seed: 1, length: Self.size), sourceLocation: sourceLocation)
    }

    // MARK: The cache

    @Test func `A fresh response is used, a stale one is revalidated, and by default none is reused`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/fresh", Self.resource(["Cache-Control": "max-age=600"]))
            stage.origin.serve("/stale", Self.resource())
            let session = try await session(stage)
            for (path, second) in [("/fresh", CacheStatus.hit), ("/stale", .revalidated)] {
                let url = stage.origin.url(path)
                try await expect(stage.run(.download, "GET", url, in: session), .stored, stage)
                let again = try await stage.run(.download, "GET", url, in: session)
                try await expect(again, second, stage)
                let last = again.result?.progress.transactions.last
                #expect(last?.resourceFetchType == (second == .hit ? .localCache : .networkLoad))
                #expect(again.result?.response?.statusCode == 200)
                let plain = try await self.session(stage, .reloadIgnoringLocalCacheData, "plain")
                try await expect(stage.run(.download, "GET", url, in: plain), nil, stage)
            }
            #expect(stage.origin.requests("/fresh").count == 2 && stage.origin.requests("/stale").count == 3)
            #expect(stage.origin.requests("/stale")[1].fields.contains("If-None-Match"))
            let usage = try await stage.service.cacheUsage(of: stage.app).record
            #expect(usage.entries == 2 && usage.hits == 1 && usage.revalidations == 1)
            // Contents and cache have one file for the same bytes.
            let app = try await stage.service.app(stage.app)
            #expect(app.storedBytes == Int64(6 * Self.size))
            try await eventually("one file") { filesBelow(stage.folder.file("data/contents")).count == 1 }
        }
    }

    @Test func `Each policy has its documented effect`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource())
            let url = stage.origin.url("/a")
            let session = try await session(stage, .returnCacheDataElseLoad)
            let none = try await stage.run(.download, "GET", url, in: session) {
                $0.request.cachePolicy = .returnCacheDataDontLoad
            }
            #expect(none.outcome == .failed && none.result?.error?.code == .resourceUnavailable)
            #expect(stage.origin.requests.isEmpty)
            try await expect(stage.run(.download, "GET", url, in: session), .stored, stage)
            try await expect(stage.run(.download, "GET", url, in: session), .hit, stage)
            let stored = try await stage.run(.download, "GET", url, in: session) {
                $0.request.cachePolicy = .returnCacheDataDontLoad
            }
            try await expect(stored, .hit, stage)
            let confirmed = try await stage.run(.download, "GET", url, in: session) {
                $0.request.cachePolicy = .reloadRevalidatingCacheData
            }
            try await expect(confirmed, .revalidated, stage)
            #expect(stage.origin.requests.count == 2)
            try await stage.service.emptyCache(of: stage.app, url: nil)
            try await expect(stage.run(.download, "GET", url, in: session), .stored, stage)
        }
    }

    @Test func `A changed response replaces the stored one`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource())
            let session = try await session(stage)
            try await expect(stage.run(.download, "GET", stage.origin.url("/a"), in: session), .stored, stage)
            stage.origin.serve("/a", Self.resource(seed: 2))
            let changed = try await stage.run(.download, "GET", stage.origin.url("/a"), in: session)
            #expect(changed.result?.cacheStatus == .stored)
            #expect(try await stage.bytes(changed) == Content.bytes(seed: 2, length: Self.size))
        }
    }

    @Test func `A response with Vary is reused only for the same fields`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource(["Vary": "X-Kind", "Cache-Control": "max-age=600"]))
            let session = try await session(stage)
            for (kind, status) in [("a", CacheStatus.stored), ("b", .stored), ("a", .hit), ("b", .hit)] {
                let task = try await stage.run(.download, "GET", stage.origin.url("/a"), in: session) {
                    $0.request.headers.append("X-Kind", kind)
                }
                try await expect(task, status, stage)
            }
        }
    }

    @Test func `Requests with another credential, or of another app, are sent to the origin`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource(["Cache-Control": "max-age=600"]))
            let url = stage.origin.url("/a")
            let session = try await session(stage)
            try await expect(stage.run(.download, "GET", url, in: session), .stored, stage)
            let secret = try await stage.run(.download, "GET", url, in: session) {
                $0.request.headers.append("Authorization", "Bearer x")
            }
            try await expect(secret, .stored, stage)
            let other = try await ServiceStage.app("other", of: stage.service)
            let foreign = try await self.session(stage, of: other)
            try await expect(stage.run(.download, "GET", url, in: foreign), .stored, stage)
            #expect(stage.origin.requests.count == 3)
        }
    }

    /// Each app asks the origin itself, whatever its policy and credential, and learns nothing of the other.
    @Test(arguments: [nil, ("Authorization", "Bearer x"), ("Cookie", "a=b")])
    func `No policy reuses the response of another app`(_ field: (name: String, value: String)?) async throws {
        try await ServiceStage.run { stage in
            let first = try await session(stage)
            let other = try await ServiceStage.app("other", of: stage.service)
            let foreign = try await session(stage, of: other)
            func run(_ path: String, _ policy: CachePolicy, in session: SessionRecord) async throws -> TaskRecord {
                try await stage.run(.download, "GET", stage.origin.url(path), in: session) {
                    $0.request.cachePolicy = policy
                    if let field { $0.request.headers.append(field.name, field.value) }
                }
            }
            for policy in CachePolicy.allCases {
                let path = "/\(policy)"
                stage.origin.serve(path, Self.resource(["Cache-Control": "max-age=600"]))
                try await expect(run(path, .useProtocolCachePolicy, in: first), .stored, stage)
                let task = try await run(path, policy, in: foreign)
                if policy == .returnCacheDataDontLoad {
                    #expect(task.result?.error?.code == .resourceUnavailable && task.result?.cacheStatus == nil)
                } else {
                    try await expect(task, policy == .reloadIgnoringLocalCacheData ? nil : .stored, stage)
                    #expect(stage.origin.requests(path).count == 2, "\(policy)")
                }
            }
            let usage = try await stage.service.cacheUsage(of: other).record
            #expect(usage.entries == 3 && usage.hits + usage.revalidations + usage.collapsed == 0)
        }
    }

    @Test func `A destination gets a copy that the app may change`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource(["Cache-Control": "max-age=600"]))
            let session = try await session(stage)
            for (name, status) in [("a.bin", CacheStatus.stored), ("b.bin", .hit)] {
                let task = try await stage.run(.download, "GET", stage.origin.url("/a"), in: session) {
                    $0.destination = Destination(root: "root", path: name, replace: false)
                }
                #expect(task.outcome == .succeeded && task.result?.cacheStatus == status)
                #expect(readFile(stage.folder.file("root/\(name)")) == Content.bytes(seed: 1, length: Self.size))
                stage.folder.write([1], to: "root/\(name)")
            }
            try await expect(stage.run(.download, "GET", stage.origin.url("/a"), in: session), .hit, stage)
            #expect(stage.partialFiles().isEmpty)
        }
    }

    @Test func `A content is fetched again if the stored response has another digest`() async throws {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource(seed: 2))
            let session = try await session(stage, .returnCacheDataElseLoad)
            _ = try await stage.run(.download, "GET", stage.origin.url("/a"), in: session)
            stage.origin.serve("/a", Self.resource())
            for algorithm in [DigestAlgorithm.sha256, .sha512] {
                let bytes = Content.bytes(seed: 1, length: Self.size)
                let task = try await stage.run(.download, "GET", stage.origin.url("/a"), in: session) {
                    $0.expectedDigest = ContentDigest(
                        algorithm: algorithm, value: Digest.of(bytes, algorithm).hexadecimal)
                }
                try await expect(task, nil, stage)
            }
        }
    }

    // MARK: Single flight

    @Test func `Two hundred concurrent tasks fetch a file once`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            stage.origin.serve("/a", Self.resource(), turns: [[.holdBody(after: 100_000, gate)]])
            let session = try await session(stage)
            let tasks = try await stage.service.createTasks(
                (0..<200).map { _ in stage.order("/a") }, in: session, recording: nil
            ).map(\.task)
            try await eventually("followers", within: .seconds(60)) {
                try await stage.service.task(tasks[199].number, in: session.id).phase == .following
            }
            let waiting = try await stage.service.task(tasks[199].number, in: session.id)
            let reasons = stage.service.waitingReasons(of: waiting, in: session)
            #expect(reasons.map(\.kind) == [.sameTransfer] && reasons.first?.leader?.session == "s")
            gate.open()
            var statuses: [CacheStatus: Int] = [:]
            for task in tasks {
                let done = try await stage.completed(task)
                #expect(done.outcome == .succeeded && done.content?.length == Int64(Self.size))
                if let status = done.result?.cacheStatus { statuses[status, default: 0] += 1 }
            }
            #expect(statuses == [.stored: 1, .collapsed: 199])
            #expect(Double(stage.origin.bytesSent("/a")) <= 1.01 * Double(Self.size))
            try await expect(stage.completed(tasks[150]), .collapsed, stage)
            #expect(try await stage.service.app(stage.app).storedBytes == Int64(200 * Self.size))
        }
    }

    @Test func `Tasks share a response although it sets a cookie of their session`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            stage.origin.serve(
                "/a", Self.resource(),
                always: [.holdBody(after: 100_000, gate), .header("Set-Cookie", "one=1; Path=/")])
            let session = try await session(stage)
            let tasks = try await stage.service.createTasks(
                (0..<20).map { _ in stage.order("/a") }, in: session, recording: nil
            ).map(\.task)
            _ = try await stage.task(tasks[19], reaches: .following)
            gate.open()
            for task in tasks { #expect(try await stage.completed(task).outcome == .succeeded) }
            #expect(stage.origin.requests("/a").count == 1)
        }
    }

    /// A leader that has received a part, and a task that follows it.
    private func pair(
        _ stage: ServiceStage, _ gate: Gate, _ more: [Misbehaviour] = [],
        _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> (session: SessionRecord, leader: TaskRecord, follower: TaskRecord) {
        stage.origin.serve("/a", Self.resource(), turns: [more + [.holdBody(after: Self.size / 2, gate)]])
        let session = try await session(stage)
        let leader = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session, change)
        try await stage.received(Int64(Self.size / 4), of: leader)
        let follower = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session)
        return (session, leader, try await stage.task(follower, reaches: .following))
    }

    @Test(arguments: [TaskCommand.cancel(reason: nil), .suspend])
    func `A follower resumes from the bytes of a stopped leader`(_ command: TaskCommand) async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            let (_, leader, follower) = try await pair(stage, gate)
            _ = try await stage.service.command(command, task: leader.id)
            try await expect(stage.completed(follower), .stored, stage)
            gate.open()
            #expect(stage.origin.bytesSent("/a") < Self.size * 3 / 2)
            #expect(stage.origin.requests("/a").last?.fields.contains("Range") == true)
            if case .suspend = command {
                _ = try await stage.service.command(.resume, task: leader.id)
                try await expect(stage.completed(leader), .revalidated, stage)
            }
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test func `A leader whose bytes a follower has got produces no resume data, and says why`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            let (_, leader, follower) = try await pair(stage, gate)
            guard case .notResumable(let reason) = try await stage.service.cancelProducingResumeData(leader) else {
                throw Unexpected()
            }
            #expect(reason.contains("another task"))
            try await expect(stage.completed(follower), .stored, stage)
            #expect(stage.origin.bytesSent("/a") < Self.size * 3 / 2)
        }
    }

    @Test func `A follower resumes from the bytes of a leader whose session is deleted`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            stage.origin.serve("/a", Self.resource(), turns: [[.holdBody(after: Self.size / 2, gate)]])
            let other = try await session(stage, .useProtocolCachePolicy, "other")
            let leader = try await stage.create(.download, "GET", stage.origin.url("/a"), in: other)
            try await stage.received(Int64(Self.size / 4), of: leader)
            let follower = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session(stage))
            _ = try await stage.task(follower, reaches: .following)
            _ = try await stage.service.deleteSession(other.id)
            try await expect(stage.completed(follower), .stored, stage)
            gate.open()
            #expect(stage.origin.bytesSent("/a") < Self.size * 3 / 2)
            #expect(stage.origin.requests("/a").last?.fields.contains("Range") == true)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test func `A follower does not take the file into which the former leader writes another content`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 2 }) { stage in
            let (gate, other, places) = (Gate(), Gate(), [Gate(), Gate()])
            defer { for gate in [gate, other] + places { gate.open() } }
            let (session, leader, follower) = try await pair(stage, gate)
            // Two tasks have the places, so that the follower waits when it gets the bytes.
            for (path, place) in zip(["/1", "/2"], places) {
                stage.origin.serve(path, .text("x"), always: [.hold(place)])
                try await stage.create(.download, "GET", stage.origin.url(path), in: session) { $0.priority = 1 }
            }
            _ = try await stage.service.command(.suspend, task: leader.id)
            try await eventually("both are in flight") {
                stage.origin.requests("/1").count == 1 && stage.origin.requests("/2").count == 1
            }
            let waiting = try await stage.task(follower, reaches: .queued)
            #expect(waiting.progress?.adoptedFile == "partial/\(leader.id.rawValue)")
            stage.origin.serve(
                "/b", .generated(seed: 9, length: Self.size), always: [.holdBody(after: Self.size / 2, other)])
            var changes = TaskChanges()
            changes.request = TransferRequest(url: stage.origin.url("/b"), method: "GET")
            changes.origin = stage.origin.url("")
            changes.priority = 1
            _ = try await stage.service.changeTask(leader.id, changes, ifRevision: nil)
            _ = try await stage.service.command(.resume, task: leader.id)
            places[0].open()
            try await stage.received(Int64(Self.size / 4), of: leader)
            places[1].open()
            try await eventually("the follower is in flight") { stage.origin.requests("/a").count == 2 }
            let one = try await stage.completed(follower)
            other.open()
            let two = try await stage.completed(leader)
            #expect(try await Digest.of(stage.bytes(two)).hexadecimal == two.result?.contentDigest?.value)
            #expect(try await stage.bytes(two) == Content.bytes(seed: 9, length: Self.size))
            #expect(try await Digest.of(stage.bytes(one)).hexadecimal == one.result?.contentDigest?.value)
            #expect(stage.origin.requests("/b").count == 1, "its file is not gone")
        }
    }

    @Test func `The bytes that a task has taken over stay when it is cancelled before the response`() async throws {
        try await ServiceStage.run { stage in
            let (gate, head) = (Gate(), Gate())
            defer { for gate in [gate, head] { gate.open() } }
            let (session, leader, follower) = try await pair(stage, gate)
            stage.origin.serve("/a", Self.resource(), turns: [[.hold(head)]])
            _ = try await stage.service.command(.cancel(reason: nil), task: leader.id)
            try await eventually("the follower waits for its response") { head.waiting == 1 }
            try await eventually("the store knows its file") {
                try await stage.service.task(follower.number, in: session.id).progress?.adoptedFile == nil
            }
            _ = try await stage.service.command(.cancel(reason: nil), task: follower.id)
            let cancelled = try await stage.service.task(follower.number, in: session.id)
            let again = try await stage.service.retry(cancelled, in: session, recording: nil).task
            try await expect(stage.completed(again), .stored, stage)
            #expect(stage.origin.requests("/a").last?.fields.contains("Range") == true)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test func `A follower resumes from the bytes of a leader that exceeds its limit`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            // Without a length the received bytes reach the limit.
            let (_, leader, follower) = try await pair(stage, gate, [.chunked(size: 65_536)]) {
                $0.maximumContentLength = Int64(Self.size) - 1
            }
            gate.open()
            let failed = try await stage.completed(leader)
            #expect(failed.result?.error?.code == .dataLengthExceedsMaximum)
            try await expect(stage.completed(follower), .stored, stage)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test func `A leader with another expected digest leaves its bytes to its followers`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            let (_, leader, follower) = try await pair(stage, gate) {
                $0.expectedDigest = ContentDigest(algorithm: .sha256, value: String(repeating: "0", count: 64))
            }
            gate.open()
            try await expect(stage.completed(follower), .collapsed, stage)
            let failed = try await stage.completed(leader)
            #expect(failed.outcome == .failed && failed.result?.error?.underlying?.code == "digest-mismatch")
            #expect(stage.origin.requests("/a").count == 2)
            try await expect(stage.completed(follower), .collapsed, stage)
            try await stage.waitForNoPartialFiles()
        }
    }

    @Test func `Each task fetches a response that may not be reused`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            let resource = Self.resource(["Cache-Control": "no-store"])
            let head = Gate()
            stage.origin.serve("/a", resource, turns: [[.hold(head), .holdBody(after: 100, gate)]])
            let session = try await session(stage)
            let leader = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session)
            try await stage.origin.waitForRequests(1)
            let follower = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session)
            _ = try await stage.task(follower, reaches: .following)
            head.open()
            // The leader's body has not arrived yet.
            try await expect(stage.completed(follower), nil, stage)
            gate.open()
            try await expect(stage.completed(leader), nil, stage)
            #expect(stage.origin.requests("/a").count == 2)
        }
    }

    @Test func `An error of the origin ends all followers`() async throws {
        try await ServiceStage.run { stage in
            let gate = Gate()
            defer { gate.open() }
            stage.origin.serve("/a", .text("gone", status: 404), turns: [[.hold(gate)]])
            let session = try await session(stage)
            let leader = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session)
            try await stage.origin.waitForRequests(1)
            let plain = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session)
            let strict = try await stage.create(.download, "GET", stage.origin.url("/a"), in: session) {
                $0.failOnHTTPError = true
            }
            for task in [plain, strict] { _ = try await stage.task(task, reaches: .following) }
            gate.open()
            for task in [leader, plain] {
                let done = try await stage.completed(task)
                #expect(done.outcome == .httpError && done.result?.response?.statusCode == 404)
                #expect(try await stage.bytes(done) == Array("gone".utf8))
            }
            #expect(try await stage.completed(strict).outcome == .failed)
            #expect(stage.origin.requests("/a").count == 1)
        }
    }

    @Test func `Without a capacity no response is reused, but concurrent tasks still share a transfer`() async throws {
        try await ServiceStage.run(configured: { $0.cacheCapacity = 0 }) { stage in
            let gate = Gate()
            defer { gate.open() }
            let (session, leader, follower) = try await pair(stage, gate)
            gate.open()
            try await expect(stage.completed(leader), nil, stage)
            try await expect(stage.completed(follower), .collapsed, stage)
            try await expect(stage.run(.download, "GET", stage.origin.url("/a"), in: session), nil, stage)
            #expect(stage.origin.requests("/a").count == 2)
        }
    }

    @Test(arguments: [CachePolicy.reloadIgnoringLocalCacheData, .returnCacheDataElseLoad])
    func `A content whose file is gone is fetched again, and is then readable for all its tasks`(_ policy: CachePolicy)
        async throws
    {
        try await ServiceStage.run { stage in
            stage.origin.serve("/a", Self.resource())
            let session = try await session(stage, policy)
            let url = stage.origin.url("/a")
            let first = try await stage.run(.download, "GET", url, in: session)
            let folder = stage.folder.file("data/contents")
            for file in filesBelow(folder) { try FileManager.default.removeItem(atPath: "\(folder)/\(file)") }
            await #expect(throws: DomainError.contentExpired) { try await stage.bytes(first) }
            let again = try await stage.run(.download, "GET", url, in: session)
            for task in [again, first] {
                #expect(try await stage.bytes(task) == Content.bytes(seed: 1, length: Self.size))
            }
            #expect(filesBelow(folder).count == 1 && stage.origin.requests("/a").count == 2)
        }
    }

    @Test func `The cache and the bytes of a leader survive a restart`() async throws {
        let (folder, origin) = (TemporaryFolder(), try OriginServer())
        origin.serve("/a", Self.resource(["Cache-Control": "max-age=600"]))
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await expect(stage.run(.download, "GET", origin.url("/a"), in: session(stage)), .stored, stage)
        }
        try await ServiceStage.run(folder: folder, origin: origin) { stage in
            try await expect(stage.run(.download, "GET", origin.url("/a"), in: session(stage)), .hit, stage)
        }
    }
}
