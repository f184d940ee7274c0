import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Transfers

/// Downloads whose sources fail one after the other.
@Suite(.serialized)
struct MirrorTests {
    private let content = Resource.generated(seed: 1, length: 1 << 20)

    @Test(arguments: [Misbehaviour.noAnswer(.reset), .status(404), .status(503)])
    func `A mirror that fails within the content leaves it to the task's own URL`(_ end: Misbehaviour) async throws {
        try await ServiceStage.run { stage in
            let (session, mirror) = (try await stage.session(), try OriginServer())
            stage.origin.serve("/a", content, turns: [[.status(503)]])
            mirror.serve("/a", content, turns: [[.cut(after: 500_000)]] + Array(repeating: [end], count: 50))
            let order = stage.order("/a") { $0.mirrors = [mirror.url("/a")] }
            let done = try await stage.completed(stage.create(order, in: session)[0])
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == content.sha256)
            #expect(done.result?.response?.url == stage.origin.url("/a"))
            #expect(stage.origin.requests("/a").map { $0.fields["Range"] } == [nil, nil])
            // Bytes at the mirror are given up at once if it has no more, and after several failures otherwise.
            let isFinal = if case .status(404, _, _) = end { true } else { false }
            #expect(mirror.requests("/a").count == (isFinal ? 2 : 4))
            #expect(done.result?.progress.bytesFetchedTwice ?? 0 > 0)
            #expect(try await stage.resumptions(session).map(\.cause) == ["notResumable"])
        }
    }

    @Test func `The page of a useless mirror is not the result while the task's own URL may be retried`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", content, turns: [[.status(503)]])
            let order = stage.order("/a") { $0.mirrors = [stage.origin.url("/missing")] }
            let done = try await stage.completed(stage.create(order, in: session)[0])
            #expect(done.outcome == .succeeded)
            #expect(done.content?.digest.value == content.sha256)
            #expect(done.result?.progress.attempts.attempts == 2)
            #expect(stage.origin.requests("/missing").count == 1)
        }
    }

    @Test func `If all sources fail for good, the result is that of the task's own URL`() async throws {
        try await ServiceStage.run { stage in
            let session = try await stage.session()
            stage.origin.serve("/a", content, always: [.status(503, body: "busy")])
            let order = stage.order("/a") { $0.mirrors = [stage.origin.url("/missing")] }
            let done = try await stage.completed(stage.create(order, in: session)[0])
            #expect(done.outcome == .httpError)
            #expect(done.result?.response?.statusCode == 503)
            #expect(done.result?.response?.url == stage.origin.url("/a"))
            #expect(try await stage.bytes(done) == Array("busy".utf8))
            #expect(stage.origin.requests("/a").count == RetryPolicy.attemptsOfOneKind)
        }
    }
}
