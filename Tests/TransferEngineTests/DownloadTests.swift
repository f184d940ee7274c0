import Base
import Core
import Formats
import TestSupport
import Testing
import TransferEngine

@Suite struct DownloadTests {
    @Test func `A small download stays in memory`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/small", .generated(seed: 1, length: 10_000))
        let result = try await harness.run(harness.request("/small"))
        #expect(result.outcome == .complete)
        #expect(result.received == .memory(Content.bytes(seed: 1, length: 10_000)))
        #expect(result.length == 10_000)
        #expect(result.lengthVerified)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 1, length: 10_000))
        #expect(result.head?.status == 200)
        #expect(result.head?.fields["ETag"] == "\"v1\"")
        #expect(filesBelow(harness.folder.path).isEmpty)
    }

    @Test func `A large download is written to its file, with a length or without`() async throws {
        let harness = try EngineHarness()
        let length = 5_000_000
        harness.origin.serve("/announced", .generated(seed: 2, length: length))
        harness.origin.serve("/chunked", .generated(seed: 2, length: length), always: [.chunked(size: 10_000)])
        for path in ["/announced", "/chunked"] {
            let request = harness.request(path) {
                $0.sink = .content(path: harness.partial, digests: [.sha256, .md5])
            }
            let result = try await harness.run(request)
            #expect(result.outcome == .complete)
            #expect(result.received == .file(path: harness.partial, length: Int64(length)))
            #expect(result.bytes == Content.bytes(seed: 2, length: length))
            #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 2, length: length))
            #expect(result.digests[.md5] == Digest.of(Content.bytes(seed: 2, length: length), .md5))
            #expect(result.lengthVerified)
        }
    }

    @Test func `A body that ends with its connection is complete but unverified`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 3, length: 1000), always: [.closeDelimited])
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .complete)
        #expect(!result.lengthVerified)
        #expect(result.bytes == Content.bytes(seed: 3, length: 1000))
    }

    @Test func `A skipped body does not delay the end, and a short one leaves the connection usable`() async throws {
        let harness = try EngineHarness()
        let long = Misbehaviour.raw(Array("HTTP/1.1 302 Found\r\nContent-Length: 70000\r\n\r\n".utf8), .silence)
        harness.origin.serve("/", .text("moved"), turns: [[], [], [long], [.stall(after: 3)], [.cut(after: 3)]])
        for _ in 0..<5 {
            let result = try await harness.run(harness.request("/") { $0.judge = { _ in HeadJudgement(.skip) } })
            #expect(result.outcome == .complete && result.received == .none)
        }
        #expect(harness.origin.requests.map(\.connection) == [1, 1, 1, 2, 3])
    }

    @Test func `A range continues the existing bytes, digest included`() async throws {
        let harness = try EngineHarness()
        let whole = Content.bytes(seed: 4, length: 300_000)
        harness.origin.serve("/", .generated(seed: 4, length: 300_000))
        // The file is longer than the offset: the rest was written after the last sync, and is cut off.
        harness.folder.write(Array(whole[..<150_000]), to: "partial")
        let request = harness.request("/") {
            $0.headers.append("Range", "bytes=100000-")
            $0.sink = .content(path: harness.partial, resumeOffset: 100_000)
            $0.judge = { $0.status == 206 ? .keep(at: 100_000) : .stop }
        }
        let result = try await harness.run(request)
        #expect(result.outcome == .complete)
        #expect(result.bytes == whole)
        #expect(result.bytesReceived == 200_000)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 4, length: 300_000))
    }

    @Test func `A smaller start seeks back and restarts the digest`() async throws {
        let harness = try EngineHarness()
        let whole = Content.bytes(seed: 5, length: 200_000)
        harness.origin.serve("/", .generated(seed: 5, length: 200_000))
        harness.folder.write(Array(whole[..<100_000]), to: "partial")
        let request = harness.request("/") {
            $0.headers.append("Range", "bytes=50000-")
            $0.sink = .content(path: harness.partial, resumeOffset: 100_000)
            $0.judge = { _ in .keep(at: 50_000) }
        }
        let result = try await harness.run(request)
        #expect(result.outcome == .complete)
        #expect(result.bytes == whole)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 5, length: 200_000))
    }

    @Test(arguments: [0, 500, 500_000])
    func `A response from the start replaces the existing bytes`(length: Int) async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 6, length: length))
        harness.folder.write(Array(repeating: 1, count: 100_000), to: "partial")
        let request = harness.request("/") {
            $0.sink = .content(path: harness.partial, resumeOffset: 100_000)
        }
        let result = try await harness.run(request)
        #expect(result.outcome == .complete)
        #expect(result.length == Int64(length))
        #expect(result.bytes == Content.bytes(seed: 6, length: length))
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 6, length: length))
    }

    @Test func `A missing or short prefix is reported before the request is sent`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 7, length: 1000))
        harness.folder.write([1, 2, 3], to: "short")
        for name in ["short", "missing"] {
            let request = harness.request("/") {
                $0.sink = .content(path: harness.folder.file(name), resumeOffset: 500)
            }
            let result = try await harness.run(request)
            #expect(result.outcome == .failed(.prefixMissing))
            #expect(result.length == 0)
        }
        #expect(harness.origin.requests.isEmpty)
    }

    @Test func `A stopped download keeps its bytes, and resumes`() async throws {
        let harness = try EngineHarness()
        let gate = Gate()
        harness.origin.serve("/", .generated(seed: 8, length: 1_000_000), turns: [[.holdBody(after: 400_000, gate)]])
        let request = harness.request("/") { $0.sink = .content(path: harness.partial) }
        harness.engine.start(request)
        try await eventually("progress") { harness.engine.progress(request.id)?.length == 400_000 }
        #expect(harness.engine.progress(request.id)?.expectedLength == 1_000_000)
        #expect(harness.engine.progress(request.id)?.phase == .receiving)
        harness.engine.stop(request.id)
        let stopped = try await harness.result(of: request)
        #expect(stopped.outcome == .stopped)
        #expect(stopped.received == .file(path: harness.partial, length: 400_000))
        #expect(harness.engine.progress(request.id) == nil)
        let again = harness.request("/") {
            $0.headers.append("Range", "bytes=400000-")
            $0.sink = .content(path: harness.partial, resumeOffset: 400_000)
            $0.judge = { _ in .keep(at: 400_000) }
        }
        let result = try await harness.run(again)
        #expect(result.outcome == .complete)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 8, length: 1_000_000))
    }

    @Test func `The durable offset is reported while bytes arrive`() async throws {
        let harness = try EngineHarness()
        let gate = Gate()
        let length = 20 << 20
        harness.origin.serve("/", .generated(seed: 9, length: length), turns: [[.holdBody(after: length - 5, gate)]])
        let request = harness.request("/")
        harness.engine.start(request)
        // By bytes every 4 MiB, then by time for the rest.
        try await eventually("durable offsets") {
            harness.reports(of: request).contains {
                if case .durable(_, Int64(length - 5), _) = $0 { true } else { false }
            }
        }
        gate.open()
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete)
        let offsets = harness.reports(of: request).compactMap { report -> Int64? in
            if case .durable(_, let offset, _) = report { offset } else { nil }
        }
        #expect(offsets == offsets.sorted())
        #expect(offsets.count >= 2)
    }

    @Test func `Reading pauses at the limit of unrecorded bytes, without an idle timeout`() async throws {
        let harness = try EngineHarness()
        let length = 3_000_000
        harness.origin.serve("/", .generated(seed: 9, length: length))
        let request = harness.request("/") {
            $0.maximumUnrecorded = 1_000_000
            $0.idleTimeout = .milliseconds(300)
        }
        harness.engine.start(request)
        var reached: Int64 = 0
        for limit in [1_000_000, 2_000_000] as [Int64] {
            try await eventually("it is near the limit") {
                (harness.engine.progress(request.id)?.length ?? 0) > limit - 100_000
            }
            try await stays("it waits", for: .milliseconds(600)) {
                reached = harness.engine.progress(request.id)?.length ?? .max
                return reached <= limit
            }
            harness.engine.recorded(request.id, upTo: limit == 1_000_000 ? 1_000_000 : reached)
        }
        try await eventually("it ends") {
            reached = harness.engine.progress(request.id)?.length ?? reached
            harness.engine.recorded(request.id, upTo: reached)
            return harness.engine.progress(request.id) == nil
        }
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 9, length: length))
    }

    @Test func `A prefix is resumed only if its digest matches`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 8, length: 1_000_000), always: [.cut(after: 400_000)])
        let first = harness.request("/") { $0.sink = .content(path: harness.partial) }
        let broken = try await harness.run(first)
        #expect(broken.partialSHA256.map(Content.hex) == Content.sha256(seed: 8, length: 400_000))
        for (digest, fault) in [(broken.partialSHA256, nil), (Digest.of([1]), TransferFault.prefixMissing)] {
            let again = harness.request("/") {
                $0.headers.append("Range", "bytes=400000-")
                $0.sink = .content(path: harness.partial, resumeOffset: 400_000, resumeDigest: digest)
                $0.judge = { _ in .keep(at: 400_000) }
            }
            let before = harness.origin.requests.count
            let result = try await harness.run(again)
            #expect((result.outcome == .failed(.prefixMissing)) == (fault != nil))
            #expect(harness.origin.requests.count == before + (fault == nil ? 1 : 0))
        }
    }

    @Test func `A memory sink stops at its limit and keeps the head`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 10, length: 100_000), always: [.endless])
        let result = try await harness.run(
            harness.request("/") {
                $0.sink = .memory(limit: 1000)
                $0.judge = { _ in .keep(at: 0) }
            })
        #expect(result.outcome == .complete)
        #expect(result.receivedTruncated)
        #expect(result.bytes?.count == 1000)
        #expect(result.head?.status == 200)
    }

    @Test func `An error page is kept apart and leaves the content unchanged`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 11, length: 10), always: [.status(503, body: "later, please")])
        harness.folder.write(Array(repeating: 7, count: 70_000), to: "partial")
        let request = harness.request("/") {
            $0.sink = .content(path: harness.partial, resumeOffset: 70_000)
        }
        let result = try await harness.run(request)
        #expect(result.outcome == .complete)
        #expect(result.side == Array("later, please".utf8))
        #expect(!result.sideTruncated)
        #expect(result.received == .file(path: harness.partial, length: 70_000))
        #expect(result.bytes == Array(repeating: 7, count: 70_000))
    }

    @Test func `An endless error page is cut`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 12, length: 10), always: [.endless])
        let result = try await harness.run(harness.request("/") { $0.judge = { _ in .discard(limit: 5000) } })
        #expect(result.outcome == .complete)
        #expect(result.side.count == 5000)
        #expect(result.sideTruncated)
        #expect(result.received == .none)
    }

    @Test func `A redirect is an ordinary response`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/from", .text(""), always: [.redirect("/to")])
        harness.origin.serve("/to", .text("there"))
        let result = try await harness.run(harness.request("/from"))
        #expect(result.outcome == .complete)
        #expect(result.head?.status == 302)
        #expect(result.head?.fields["Location"] == "/to")
        #expect(harness.origin.requests.map(\.path) == ["/from"])
    }

    @Test func `The judge can stop an exchange before its body`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 13, length: 1_000_000))
        let result = try await harness.run(harness.request("/") { $0.judge = { _ in .stop } })
        #expect(result.outcome == .stopped)
        #expect(result.head?.status == 200)
        #expect(result.length == 0)
    }

    @Test func `Content beyond the limit is refused by its announced length and by its count`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/announced", .generated(seed: 14, length: 2000))
        harness.origin.serve("/endless", .generated(seed: 14, length: 2000), always: [.endless])
        for path in ["/announced", "/endless"] {
            let result = try await harness.run(harness.request(path) { $0.maximumBytes = 1999 })
            #expect(result.outcome == .failed(.tooLarge))
            #expect(result.length <= 1999)
        }
    }

    @Test func `HEAD returns a head and no content`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 15, length: 1_000_000))
        let result = try await harness.run(harness.request("/") { $0.method = "HEAD" })
        #expect(result.outcome == .complete)
        #expect(result.head?.fields["Content-Length"] == "1000000")
        #expect(result.received == .memory([]))
        #expect(filesBelow(harness.folder.path).isEmpty)
    }

    @Test func `Informational heads are reported before the final one`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .text("done"), always: [.informational(104, [("Location", "/resume/here")])])
        let request = harness.request("/")
        let result = try await harness.run(request)
        #expect(result.outcome == .complete)
        guard case .informational(_, let early) = harness.reports(of: request).first else {
            Issue.record("no informational head came first")
            return
        }
        #expect(early.status == 104)
        #expect(early.fields["Location"] == "/resume/here")
        #expect(result.head?.status == 200)
    }

    @Test func `Three hundred concurrent transfers succeed`() async throws {
        let harness = try EngineHarness(threads: 2)
        for number in 0..<300 {
            harness.origin.serve("/\(number)", .generated(seed: UInt64(number), length: number * 1000))
        }
        let requests = (0..<300).map { harness.request("/\($0)") }
        for request in requests { harness.engine.start(request) }
        for (number, request) in requests.enumerated() {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .complete)
            #expect(
                result.digests[.sha256].map(Content.hex) == Content.sha256(seed: UInt64(number), length: number * 1000))
        }
        #expect(harness.engine.count == 0)
    }

    @Test func `A bandwidth limit applies, and can be set and removed during the transfer`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 16, length: 3_000_000))
        let request = harness.request("/") {
            $0.bandwidthLimit = 50_000
            $0.idleTimeout = .milliseconds(900)
        }
        let start = ContinuousClock.now
        harness.engine.start(request)
        try await eventually("so many bytes that the limit held them back") {
            harness.engine.progress(request.id)?.bytesReceived ?? 0 > 100_000
        }
        // The first 16 or 32 KiB are not limited. Backpressure is no idleness.
        #expect(start.duration(to: .now) > .milliseconds(1000))
        #expect(harness.engine.progress(request.id)?.bytesReceived ?? .max < 1_000_000)
        harness.engine.setBandwidthLimit(request.id, nil)
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete)
        #expect(result.bytes == Content.bytes(seed: 16, length: 3_000_000))
    }
}
