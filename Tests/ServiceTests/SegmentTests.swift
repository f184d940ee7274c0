import Base
import Core
import Files
import Formats
import TestSupport
import Testing
import TransferEngine

@testable import Service
@testable import Transfers

/// Slow enough that connections overlap: about 25 MB/s each.
private let slowly = [Misbehaviour.trickle(size: 128 * 1024, pause: .milliseconds(5))]

@Suite(.serialized)
struct SegmentTests {
    private static let size = 24 << 20

    private func session(_ stage: ServiceStage, connections: Int = 16) async throws -> SessionRecord {
        try await stage.session { $0.httpMaximumConnectionsPerHost = connections }
    }

    private func pieces(_ bytes: [UInt8], length: Int = 1 << 20) -> PieceDigests {
        let values = stride(from: 0, to: bytes.count, by: length).map {
            Content.sha256(of: Array(bytes[$0..<min(bytes.count, $0 + length)]))
        }
        return PieceDigests(length: Int64(length), algorithm: .sha256, values: values)
    }

    private func digest(_ bytes: [UInt8]) -> ContentDigest {
        ContentDigest(algorithm: .sha256, value: Content.sha256(of: bytes))
    }

    @Test
    func `A content arrives over several connections, byte for byte`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: slowly)
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(16) }, in: session)[0]
            let states = try await eventually("segments in flight") {
                let states = stage.service.live.segments(task.id) ?? []
                return states.count { $0.received < $0.length } > 4 ? states : nil
            }
            #expect(states.first?.offset == 0)
            #expect(zip(states, states.dropFirst()).allSatisfy { $0.offset + $0.length <= $1.offset })
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(done.result?.response?.statusCode == 200)
            #expect(done.result?.response?.expectedContentLength == Int64(Self.size))
            let requests = stage.origin.requests("/a")
            #expect(stage.origin.inFlight.peak > 4)
            #expect(requests.dropFirst().allSatisfy { $0.fields["Range"] != nil && $0.fields["If-Range"] == "\"v1\"" })
            #expect(done.result?.progress.transactions.count == requests.count)
            // The first request was for the whole content, and its bytes in other segments are lost.
            #expect(stage.origin.bytesSent("/a") < 2 * Self.size)
            #expect(done.result?.progress.attempts.attempts == 1)
            #expect(stage.partialFiles().isEmpty)
        }
    }

    @Test
    func `A content that is moved during shutdown is not fetched again`() async throws {
        try await ServiceStage.run { stage in
            let (fetching, disk) = (Gate(), Gate())
            defer { disk.open() }
            let session = try await session(stage)
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 1000, fetching)])
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(4) }, in: session)[0]
            try await eventually("it is in segments") { stage.service.live.segments(task.id)?.isEmpty == false }
            let (service, live) = (stage.service, stage.service.live)
            // Between other steps, until all bytes have been received and read.
            for _ in 0..<4 {
                let isTaken = service.engine.disk.postSteps(.short) {
                    if let sample = live.sample(task.id), sample.phase != .finalizing { return true }
                    disk.pass()
                    return false
                }
                #expect(isTaken)
            }
            fetching.open()
            try await eventually("the disk is busy") { disk.waiting == 4 }
            service.outlet.inbox.tell(.drain)
            try await eventually("the scheduler heard it") { service.outlet.inbox.isEmpty }
            disk.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
        }
    }

    @Test
    func `Connections of one download count against the session's limit`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage, connections: 3)
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 300_000, gate)])
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(16) }, in: session)[0]
            try await eventually("three connections") { gate.waiting == 3 }
            try await stays(for: .milliseconds(300)) { stage.origin.inFlight.now == 3 }
            let other = try await stage.create(stage.order("/a"), in: session)[0]
            #expect(
                stage.service.waitingReasons(of: other, in: session).map(\.detail) == [
                    "Other transfers come first: the session's limit for this host is reached."
                ])
            gate.open()
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
    }

    @Test
    func `A short content and one without a strong validator use one connection`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            stage.origin.serve("/short", .generated(seed: 1, length: 1 << 20))
            stage.origin.serve("/weak", Resource(.generated(seed: 2, length: 6 << 20), etag: "W/\"a\""))
            stage.origin.serve("/tiny", .generated(seed: 3, length: 10))
            stage.origin.serve("/empty", .generated(seed: 3, length: 0))
            for path in ["/short", "/weak", "/tiny", "/empty"] {
                let done = try await stage.run(url: path, in: session) { $0.segments = .count(8) }
                #expect(done.outcome == .succeeded)
                let bytes = try await stage.bytes(done)
                #expect(Content.sha256(of: bytes) == done.content?.digest.value)
                #expect(stage.origin.requests(path).count == 1)
            }
        }
    }

    @Test
    func `A resource that changes during the download restarts it, with one request`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let other = Resource.generated(seed: 9, length: Self.size)
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size),
                turns: [slowly, slowly, slowly + [.become(other)]])
            let done = try await stage.run(url: "/a", in: session) { $0.segments = .count(8) }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == other.sha256)
            let causes = try await stage.resumptions(session).map(\.cause)
            #expect(causes == ["resourceChanged"])
            #expect(stage.origin.requests("/a").last?.fields["Range"] == nil)
        }
    }

    @Test
    func `An origin that announces ranges and serves none gets one request for the whole`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let resource = Resource.generated(seed: 1, length: Self.size).with { $0.servesRanges = false }
            stage.origin.serve("/a", resource, turns: [slowly, slowly])
            let done = try await stage.run(url: "/a", in: session) { $0.segments = .count(2) }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == resource.sha256)
        }
    }

    @Test
    func `A mirror with one wrong byte is found by its piece, which comes from another source`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: Self.size)
            let lie = Content.bytes(seed: 1, length: Self.size).changed(every: 1 << 20)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""), always: slowly)
            stage.origin.serve("/b", Resource(.bytes(lie), etag: "\"b\""), always: slowly)
            let done = try await stage.run(url: "/a", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
                $0.pieces = pieces(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            #expect(!stage.origin.requests("/b").isEmpty)
            #expect(done.result?.progress.bytesFetchedTwice ?? 0 > 0)
        }
    }

    @Test
    func `A mirror with a wrong byte and no pieces restarts the download from the first source`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: Self.size)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""), always: slowly)
            stage.origin.serve("/b", Resource(.bytes(bytes.changed(every: 1 << 20)), etag: "\"b\""), always: slowly)
            let done = try await stage.run(url: "/a", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
                $0.expectedDigest = digest(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            #expect(try await stage.resumptions(session).map(\.cause) == ["digestMismatch"])
            let last = stage.origin.requests.last
            #expect(last?.path == "/a")
            #expect(last?.fields["Range"] == nil)
        }
    }

    @Test
    func `Without a digest mirrors are not used`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: slowly)
            stage.origin.serve("/b", .generated(seed: 1, length: Self.size))
            let done = try await stage.run(url: "/a", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
            }
            #expect(done.outcome == .succeeded)
            #expect(stage.origin.requests("/b").isEmpty)
            #expect(stage.origin.requests("/a").count > 1)
        }
    }

    @Test
    func `A dead mirror and a forbidden one cause no delay`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: Self.size)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""), always: slowly)
            let gone = try OriginServer()
            gone.stop()
            let done = try await stage.run(url: "/a", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [gone.url("/b"), stage.origin.url("/missing"), "http://10.255.255.1/b"]
                $0.expectedDigest = digest(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            #expect(done.result?.progress.attempts.attempts == 1)
        }
    }

    @Test(arguments: [true, false])
    func `A dead first source leaves the download to its mirror, with a digest and without`(isProven: Bool) async throws
    {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: Self.size)
            stage.origin.serve("/b", Resource(.bytes(bytes), etag: "\"b\""), always: slowly)
            let done = try await stage.run(url: "/missing", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
                if isProven { $0.expectedDigest = digest(bytes) }
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            #expect(stage.origin.requests("/b").count > 1)
        }
    }

    @Test
    func `A source that breaks off leaves the rest to the other sources`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: Self.size)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""), always: slowly + [.cut(after: 1 << 20)])
            stage.origin.serve("/b", Resource(.bytes(bytes), etag: "\"b\""), always: slowly)
            let done = try await stage.run(url: "/a", in: session) {
                $0.mirrors = [stage.origin.url("/b")]
                $0.segments = .count(3)
                $0.expectedDigest = digest(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            #expect(done.result?.progress.attempts.attempts == 1)
        }
    }

    @Test
    func `Each segment resumes after a suspension`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: slowly)
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(8) }, in: session)[0]
            try await stage.received(Int64(Self.size / 2), of: task)
            _ = try await stage.service.command(.suspend, task: task.id)
            let suspended = try await eventually("segments at rest") {
                let now = try await stage.service.task(task.number, in: task.session)
                return (now.progress?.kept.segments?.count ?? 0) >= Int64(Self.size / 2) ? now : nil
            }
            #expect(suspended.progress?.kept.segments?.held.count ?? 0 > 0)
            _ = try await stage.service.command(.resume, task: task.id)
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(stage.origin.bytesSent("/a") < Self.size + (8 << 20))
            #expect(try await stage.resumptions(session).map(\.cause) == ["interrupted"])
        }
    }

    @Test
    func `Resume data keeps the segments`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            // So slowly that also a busy machine has few bytes in the buffers of its sockets.
            let slower = [Misbehaviour.trickle(size: 128 * 1024, pause: .milliseconds(20))]
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: slower)
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(8) }, in: session)[0]
            try await stage.received(Int64(Self.size / 2), of: task)
            guard case .data(let data) = try await stage.service.cancelProducingResumeData(task) else {
                throw Unexpected()
            }
            var order = stage.order("/a") { $0.segments = .count(8) }
            order.resumeData = data
            let again = try await stage.create(order, in: session)[0]
            let done = try await stage.completed(again)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(stage.origin.bytesSent("/a") < Self.size + (8 << 20))
        }
    }

    @Test
    func `Pieces are also checked in a single request`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: 100_000)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""))
            let right = pieces(bytes, length: 30_000)
            let good = try await stage.run(url: "/a", in: session) { $0.pieces = right }
            #expect(good.outcome == .succeeded)
            var wrong = right
            wrong.values[1] = wrong.values[0]
            var fewer = right
            fewer.values.removeLast()
            for pieces in [wrong, fewer] {
                let bad = try await stage.run(url: "/a", in: session) { $0.pieces = pieces }
                #expect(bad.outcome == .failed)
                #expect(bad.result?.error?.underlying?.code == "digest-mismatch")
            }
        }
    }

    @Test
    func `A piece that no source has fails the task`() async throws {
        try await ServiceStage.run { stage in
            let session = try await session(stage)
            let bytes = Content.bytes(seed: 1, length: 8 << 20)
            for path in ["/a", "/b"] { stage.origin.serve(path, Resource(.bytes(bytes), etag: "\"a\"")) }
            let done = try await stage.run(url: "/a", in: session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
                $0.pieces = pieces(bytes.changed(every: 1 << 20))
            }
            #expect(done.outcome == .failed)
            #expect(done.result?.error?.underlying?.code == "digest-mismatch")
        }
    }

    @Test
    func `Tasks that wait for the host come before more connections of one download`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfersPerHost = 4 }) { stage in
            let session = try await session(stage)
            let verySlowly = [Misbehaviour.trickle(size: 128 * 1024, pause: .milliseconds(100))]
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: verySlowly)
            stage.origin.serve("/b", .generated(seed: 2, length: 1000))
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(16) }, in: session)[0]
            try await eventually("four connections") { stage.origin.inFlight.now == 4 }
            let other = try await stage.run(url: "/b", in: session)
            #expect(other.outcome == .succeeded)
            #expect(try await stage.service.task(task.number, in: task.session).state == .running)
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
    }
}

extension ServiceStage {
    /// Creates a download of the origin and waits for its end.
    fileprivate func run(
        url path: String, in session: SessionRecord, _ change: (inout TaskSpecification) -> Void = { _ in }
    ) async throws -> TaskRecord {
        try await completed(create(order(path, change), in: session)[0])
    }
}

extension [UInt8] {
    /// A copy with one wrong byte in each stretch of this length.
    fileprivate func changed(every length: Int) -> [UInt8] {
        var bytes = self
        for index in stride(from: length / 2, to: count, by: length) { bytes[index] ^= 1 }
        return bytes
    }
}
