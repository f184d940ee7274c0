import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// Faults of servers in single segments.
@Suite(.serialized)
struct SegmentFailureTests {
    private static let size = 24 << 20
    /// Slow enough that connections overlap: about 25 MB/s each.
    private static let slowly = [Misbehaviour.trickle(size: 128 * 1024, pause: .milliseconds(5))]

    private func run(
        _ stage: ServiceStage, _ session: SessionRecord, _ change: (inout TaskSpecification) -> Void
    ) async throws -> TaskRecord {
        try await stage.completed(stage.create(stage.order("/a", change), in: session)[0])
    }

    @Test
    func `Redirected segments follow their redirect, without secrets, and skip the old URL`()
        async throws
    {
        try await ServiceStage.run { stage in
            let other = try OriginServer()
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let led = [Misbehaviour.redirect(other.url("/b"))]
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size), turns: [Self.slowly, Self.slowly, led, led, led])
            other.serve("/b", .generated(seed: 1, length: Self.size), always: Self.slowly)
            let done = try await run(stage, session) {
                $0.segments = .count(5)
                $0.request.headers.append("Authorization", "Bearer secret")
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(stage.origin.requests("/a").count == 5)
            #expect(stage.origin.requests("/a").allSatisfy { $0.fields["Authorization"] != nil })
            #expect(!other.requests("/b").isEmpty)
            #expect(other.requests("/b").allSatisfy { $0.fields["Authorization"] == nil && $0.fields["Range"] != nil })
            #expect(done.result?.progress.redirects == [RedirectRecord(statusCode: 302, url: other.url("/b"))])
        }
    }

    @Test(arguments: [Misbehaviour.PartialLie.shifted(1), .total("99999999999"), .missing])
    func `A segment with a wrong range restarts the download in one request`(
        lie: Misbehaviour.PartialLie
    ) async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size),
                turns: [Self.slowly, Self.slowly, Self.slowly + [.hold(gate), .partial(lie)]])
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(4) }, in: session)[0]
            // The others have fetched useless bytes by then.
            try await stage.received(2 << 20, of: task)
            gate.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(try await stage.resumptions(session).map(\.cause) == ["resourceChanged"])
            // One connection that was in flight may reach the origin after it.
            #expect(stage.origin.requests("/a").dropFirst().count { $0.fields["Range"] == nil } == 1)
            #expect(done.result?.progress.bytesFetchedTwice ?? 0 > 0)
        }
    }

    @Test
    func `A server that ends every range early gets requests for the rest, and sends no byte twice`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size), always: Self.slowly + [.cut(after: 2_000_000)])
            let done = try await run(stage, session) { $0.segments = .count(4) }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            // The bytes in flight of a shortened connection are sent twice.
            #expect(stage.origin.bytesSent("/a") < Self.size + (6 << 20))
            #expect(done.result?.progress.bytesFetchedTwice ?? 0 < 1 << 20)
        }
    }

    @Test
    func `A slow connection leaves its rest to another, and ends where that one began`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let gate = Gate()
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size), turns: [[.holdBody(after: 300_000, gate)]])
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(2) }, in: session)[0]
            // The slow connection got six.
            try await stage.received(Int64(Self.size - (2 << 20)), of: task)
            gate.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            // The slow connection may have had a whole buffer of 1 MiB in flight when it was shortened.
            #expect(done.result?.progress.bytesFetchedTwice ?? 0 <= 1 << 20)
        }
    }

    @Test
    func `A bandwidth limit applies to the sum of all segments`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session {
                $0.httpMaximumConnectionsPerHost = 16
                $0.bandwidthLimit = 4 << 20
            }
            let gate = Gate()
            let held = Array(repeating: [Misbehaviour.holdBody(after: 0, gate)], count: 3)
            stage.origin.serve("/a", .generated(seed: 1, length: 12 << 20), turns: held)
            let began = ContinuousClock.now
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(8) }, in: session)[0]
            try await eventually("three segments are requested") { gate.waiting == 3 }
            gate.open()
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            // At least two seconds on any machine: 12 MiB take three seconds, of which a tenth may be ahead.
            #expect(ContinuousClock.now - began > .seconds(2))
        }
    }

    @Test
    func `Bandwidth that one connection does not use is available to others`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session {
                $0.httpMaximumConnectionsPerHost = 16
                $0.bandwidthLimit = 4 << 20
            }
            let gate = Gate()
            let turns = [[Misbehaviour]](repeating: [], count: 15) + [[.holdBody(after: 0, gate)]]
            stage.origin.serve("/a", .generated(seed: 1, length: 16 << 20), turns: turns)
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(16) }, in: session)[0]
            try await eventually("one connection is left") { gate.waiting == 1 && stage.origin.inFlight.now == 1 }
            try await stage.received(15 << 20, of: task)
            gate.open()
            // A sixteenth of the limit would take four seconds for the last mebibyte, the whole limit a quarter of a
            // second.
            #expect(try await stage.completed(task, within: .milliseconds(2500)).outcome == .succeeded)
        }
    }

    @Test
    func `The egress policy judges each source, and secrets are sent to the first alone`() async throws {
        let policy = EgressPolicy(allowed: [CIDR(.v4(0x7F00_0001), 32)])
        try await ServiceStage.run(configured: { $0.egress = policy }) { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let (mirror, forbidden) = (try OriginServer(), try OriginServer(address: 0x7F00_0002))
            for origin in [stage.origin, mirror, forbidden] {
                origin.serve("/a", .generated(seed: 1, length: Self.size), always: Self.slowly)
            }
            let done = try await run(stage, session) {
                $0.segments = .count(6)
                $0.mirrors = [mirror.url("/a"), "http://127.0.0.2:\(forbidden.port)/a"]
                $0.expectedDigest = ContentDigest(
                    algorithm: .sha256, value: Content.sha256(seed: 1, length: Self.size))
                $0.request.headers.append("Authorization", "Bearer secret")
            }
            #expect(done.outcome == .succeeded)
            #expect(forbidden.requests.isEmpty)
            #expect(stage.origin.requests.allSatisfy { $0.fields["Authorization"] != nil })
            #expect(!mirror.requests.isEmpty && mirror.requests.allSatisfy { $0.fields["Authorization"] == nil })
        }
    }

    @Test
    func `Two sources at one host share its limit of connections`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 3 }
            let gate = Gate()
            for path in ["/a", "/b"] {
                stage.origin.serve(
                    path, .generated(seed: 1, length: Self.size), always: [.holdBody(after: 300_000, gate)])
            }
            let task = try await stage.create(
                stage.order("/a") {
                    $0.segments = .count(16)
                    $0.mirrors = [stage.origin.url("/b")]
                    $0.expectedDigest = ContentDigest(
                        algorithm: .sha256, value: Content.sha256(seed: 1, length: Self.size))
                }, in: session)[0]
            try await eventually("three connections") { gate.waiting == 3 }
            try await stays("no fourth", for: .milliseconds(300)) { stage.origin.inFlight.now == 3 }
            // Later the origin may not have noticed the end of one connection when the next begins.
            #expect(stage.origin.inFlight.peak == 3)
            gate.open()
            #expect(try await stage.completed(task).outcome == .succeeded)
        }
    }

    @Test
    func `After a failure behind a redirect the source's own URL is requested again`() async throws {
        try await ServiceStage.run { stage in
            let other = try OriginServer()
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let led = [Misbehaviour.redirect(other.url("/gone"))]
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), turns: [Self.slowly, led])
            let done = try await run(stage, session) { $0.segments = .count(2) }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
            #expect(other.requests("/gone").count == 1)
        }
    }

    @Test
    func `A loop of redirects that begins within a download ends it`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let led = [Misbehaviour.redirect(stage.origin.url("/a"))]
            stage.origin.serve(
                "/a", .generated(seed: 1, length: Self.size), turns: [Self.slowly] + Array(repeating: led, count: 500))
            let done = try await run(stage, session) { $0.segments = .count(2) }
            #expect(done.outcome == .failed)
            #expect(done.result?.error?.code == .httpTooManyRedirects)
        }
    }

    @Test
    func `The segments are stored before a second connection begins`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let gate = Gate()
            stage.origin.serve("/a", .generated(seed: 1, length: Self.size), always: [.holdBody(after: 1000, gate)])
            let task = try await stage.create(stage.order("/a") { $0.segments = .count(4) }, in: session)[0]
            try await eventually("four connections") { gate.waiting == 4 }
            let now = try await stage.service.task(task.number, in: task.session)
            #expect(now.progress?.kept.segments?.total == Int64(Self.size))
            // No byte has arrived that a segment would keep.
            _ = try await stage.service.command(.suspend, task: task.id)
            try await eventually("it is let go") { stage.origin.inFlight.now == 0 }
            gate.open()
            _ = try await stage.service.command(.resume, task: task.id)
            let done = try await stage.completed(task)
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(seed: 1, length: Self.size))
        }
    }

    @Test
    func `A source with wrong bytes loses its bytes, and the loss is reported`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 16 }
            let bytes = Content.bytes(seed: 1, length: Self.size)
            stage.origin.serve("/a", Resource(.bytes(bytes), etag: "\"a\""), always: Self.slowly)
            stage.origin.serve("/b", Resource(.bytes(Self.lie(bytes)), etag: "\"b\""), always: Self.slowly)
            let done = try await run(stage, session) {
                $0.segments = .count(4)
                $0.mirrors = [stage.origin.url("/b")]
                $0.pieces = Self.pieces(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
            // All bytes of the dropped source were sent twice. Its unread bytes are unknown here.
            let twice = done.result?.progress.bytesFetchedTwice ?? 0
            let received = done.result?.progress.countOfBytesReceived ?? 0
            #expect(twice > 0)
            #expect(received - twice >= Int64(Self.size) && received - twice < Int64(Self.size) + (1 << 20))
        }
    }

    @Test
    func `Two tasks whose only honest sources are at each other's hosts both continue`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session { $0.httpMaximumConnectionsPerHost = 1 }
            let (bytes, other, gate) = (Content.bytes(seed: 1, length: 4 << 20), try OriginServer(), Gate())
            var orders: [TaskOrder] = []
            for (path, liar, honest) in [("/a", stage.origin, other), ("/b", other, stage.origin)] {
                liar.serve(path, Resource(.bytes(Self.lie(bytes)), etag: "\"a\""), always: [.hold(gate)])
                honest.serve(path, Resource(.bytes(bytes), etag: "\"b\""))
                orders.append(
                    stage.order(path) {
                        $0.request.url = liar.url(path)
                        $0.mirrors = [honest.url(path)]
                        $0.pieces = Self.pieces(bytes)
                    })
            }
            let tasks = try await stage.service.createTasks(orders, in: session, recording: nil).map(\.task)
            try await eventually("both are requested") { gate.waiting == 2 }
            gate.open()
            for task in tasks {
                let done = try await stage.completed(task)
                #expect(done.outcome == .succeeded)
                #expect(done.content?.digest.value == Content.sha256(of: bytes))
            }
        }
    }

    @Test
    func `A task with the only slot of the service continues at its mirror`() async throws {
        try await ServiceStage.run(configured: { $0.maximumTransfers = 1 }) { stage in
            let session = try await stage.session()
            let (bytes, mirror) = (Content.bytes(seed: 1, length: 4 << 20), try OriginServer())
            stage.origin.serve("/a", Resource(.bytes(Self.lie(bytes)), etag: "\"a\""))
            mirror.serve("/a", Resource(.bytes(bytes), etag: "\"b\""))
            let done = try await run(stage, session) {
                $0.mirrors = [mirror.url("/a")]
                $0.pieces = Self.pieces(bytes)
            }
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == Content.sha256(of: bytes))
        }
    }

    /// The bytes with a wrong one in each piece.
    private static func lie(_ bytes: [UInt8]) -> [UInt8] {
        var lie = bytes
        for index in stride(from: 100, to: lie.count, by: 1 << 20) { lie[index] ^= 1 }
        return lie
    }

    private static func pieces(_ bytes: [UInt8]) -> PieceDigests {
        PieceDigests(
            length: 1 << 20, algorithm: .sha256,
            values: stride(from: 0, to: bytes.count, by: 1 << 20).map {
                Content.sha256(of: Array(bytes[$0..<min(bytes.count, $0 + (1 << 20))]))
            })
    }
}
