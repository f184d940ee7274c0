import Base
import Core
import Files
import Formats
import TestSupport
import Testing
import TransferEngine

@Suite struct LargeContentTests {
    @Test func `More downloads than buffers all complete, even beside silent ones`() async throws {
        let harness = try EngineHarness(buffers: 2)
        let (gate, length) = (Gate(), 2_500_000)
        for seed in 0..<12 as Range<UInt64> {
            let turns: [[Misbehaviour]] = seed < 3 ? [[.holdBody(after: 300_000, gate)]] : []
            harness.origin.serve("/\(seed)", .generated(seed: seed, length: length), turns: turns)
        }
        let requests = (0..<12).map { number in harness.request("/\(number)") { $0.pool = Int64(number % 2) } }
        for request in requests { harness.engine.start(request) }
        func expectWhole(_ numbers: Range<Int>) async throws {
            for number in numbers {
                let result = try await harness.result(of: requests[number])
                #expect(result.outcome == .complete)
                #expect(result.bytes == Content.bytes(seed: UInt64(number), length: length))
                #expect(
                    result.digests[.sha256].map(Content.hex) == Content.sha256(seed: UInt64(number), length: length))
            }
        }
        try await expectWhole(3..<12)
        gate.open()
        try await expectWhole(0..<3)
    }

    @Test func `A slow disk causes backpressure, without an idle timeout`() async throws {
        let harness = try EngineHarness(buffers: 2)
        let disk = Gate()
        let length = 20 << 20
        // The origin is never silent: it may send a few more bytes each time that it reads the limit.
        let leash = Locked(100_000)
        let send: @Sendable () -> Int = {
            leash.withLock {
                $0 = min($0 + 10, length)
                return $0
            }
        }
        harness.origin.serve("/", .generated(seed: 1, length: length), turns: [[.leash(send)]])
        let request = harness.request("/") { $0.idleTimeout = .seconds(5) }
        harness.engine.start(request)
        try await eventually("its file is open") { harness.engine.progress(request.id)?.length ?? 0 >= 100_000 }
        // Both disk threads.
        for _ in 0..<2 {
            harness.engine.disk.run {
                disk.pass()
            } then: { _ in
            }
        }
        try await eventually("the disk does nothing") { disk.waiting == 2 }
        let begun = try #require(harness.engine.progress(request.id)?.length)
        leash.withLock { $0 = length }
        try await stays("it waits longer than a peer may be silent", for: .milliseconds(5500)) {
            (harness.engine.progress(request.id)?.length ?? .max) <= begun + (2 << 20) + 128 * 1024
        }
        disk.open()
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete)
        #expect(result.digests[.sha256].map(Content.hex) == Content.sha256(seed: 1, length: length))
    }

    @Test func `A small limit of unrecorded bytes suffices`() async throws {
        let harness = try EngineHarness()
        let length = 2_000_000
        harness.origin.serve("/", .generated(seed: 2, length: length))
        let request = harness.request("/") { $0.maximumUnrecorded = 100_000 }
        harness.engine.start(request)
        var told: Int64 = 0
        try await eventually("it ends") {
            for case .durable(_, let offset, _) in harness.reports(of: request) where offset > told {
                told = offset
                harness.engine.recorded(request.id, upTo: offset)
            }
            return harness.engine.progress(request.id) == nil
        }
        #expect(try await harness.result(of: request).bytes == Content.bytes(seed: 2, length: length))
    }

    @Test func `The digest at an offset is that of the bytes below it`() async throws {
        let harness = try EngineHarness()
        let length = 12 << 20
        let gate = Gate()
        harness.origin.serve("/", .generated(seed: 3, length: length), always: [.holdBody(after: 10 << 20, gate)])
        let request = harness.request("/")
        let whole = Content.bytes(seed: 3, length: length)
        func offsets() throws -> Int {
            var count = 0
            for case .durable(_, let offset, let sha256) in harness.reports(of: request) {
                try #require(sha256 == Digest.of(Array(whole[..<Int(offset)])))
                count += 1
            }
            return count
        }
        harness.engine.start(request)
        try await eventually("an offset is told") { try offsets() > 0 }
        gate.open()
        #expect(try await harness.result(of: request).outcome == .complete)
        _ = try offsets()
    }

    @Test func `Exchanges write ranges of one file, and stop at their ends`() async throws {
        let harness = try EngineHarness(threads: 2)
        let length = 5_000_000
        harness.origin.serve("/", .generated(seed: 4, length: length))
        let cuts = [0, 1_500_001, 1_500_002, 4_000_000, length]
        let requests = zip(cuts, cuts.dropFirst()).map { start, end in
            harness.request("/") {
                $0.headers.append("Range", "bytes=\(start)-")
                $0.sink = .stretch(path: harness.partial, from: Int64(start), to: Int64(end))
                $0.judge = { _ in .keep(at: Int64(start)) }
            }
        }
        for request in requests.reversed() { harness.engine.start(request) }
        for (request, end) in zip(requests, cuts.dropFirst()) {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .complete)
            #expect(result.received == .file(path: harness.partial, length: Int64(end)))
        }
        #expect(readFile(harness.partial) == Content.bytes(seed: 4, length: length))
    }

    @Test func `A range can be shortened while its bytes arrive`() async throws {
        let harness = try EngineHarness()
        let gate = Gate()
        harness.origin.serve(
            "/", .generated(seed: 5, length: 3_000_000), always: [.holdBody(after: 500_000, gate)])
        let requests = (0..<2).map { number in
            harness.request("/") { $0.sink = .stretch(path: "\(harness.partial)-\(number)", from: 0) }
        }
        for request in requests { harness.engine.start(request) }
        for request in requests {
            try await eventually("bytes") { harness.engine.progress(request.id)?.length == 500_000 }
        }
        // One exchange has all requested bytes already.
        harness.engine.shorten(requests[0].id, to: 400_000)
        harness.engine.shorten(requests[1].id, to: 700_000)
        #expect(try await harness.result(of: requests[0]).outcome == .complete)
        gate.open()
        let second = try await harness.result(of: requests[1])
        #expect(second.outcome == .complete)
        #expect(second.bytes == Content.bytes(seed: 5, length: 700_000))
    }
}
