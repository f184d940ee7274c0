import Core
import Glibc
import TestSupport
import Testing
import TransferEngine

/// Content that is delivered in parts.
@Suite struct PartTests {
    private static let part = Int(PartPlan.usual)

    private func parts(_ harness: EngineHarness, _ request: ExchangeRequest) -> [ContentPart] {
        harness.reports(of: request).compactMap { if case .part(_, let part) = $0 { part } else { nil } }
    }

    /// Expects the bytes of a seed.
    private func expect(_ parts: [ContentPart], _ seed: UInt64, location: SourceLocation = #_sourceLocation) {
        for part in parts {
            let range = Int(part.offset)..<Int(part.end)
            #expect(part.bytes == Content.bytes(seed: seed, range: range), sourceLocation: location)
        }
    }

    @Test(arguments: [0, 1, part - 1, part, part + 1, 2 * part + 100], [false, true])
    func `Parts are cut as planned, and the last one arrives with the result`(
        _ length: Int, _ isChunked: Bool
    ) async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .generated(seed: 1, length: length), always: isChunked ? [.chunked(size: 30_000)] : [])
        let request = harness.request("/") { $0.sink = .parts() }
        harness.engine.start(request)
        for count in 0..<(length / Self.part) {
            try await eventually("part \(count + 1)") { parts(harness, request).count > count }
            harness.engine.recorded(request.id, upTo: Int64((count + 1) * Self.part))
        }
        let result = try await harness.result(of: request)
        #expect(result.outcome == .complete && result.received == .parts(length: Int64(length)))
        let all = parts(harness, request) + [result.lastPart].compactMap(\.self)
        #expect(all.map(\.number) == Array(1...max(1, (length + Self.part - 1) / Self.part)))
        #expect(all.dropLast().allSatisfy { $0.bytes.count == Self.part })
        expect(all, 1)
        #expect(all.map(\.offset) == all.map { Int64($0.number - 1) * PartPlan.usual })
        #expect(all.allSatisfy { $0.plan.expected == (isChunked ? nil : Int64(length)) })
    }

    @Test func `A download continues after parts that are elsewhere`() async throws {
        let harness = try EngineHarness()
        let length = 2 * Self.part + 50
        harness.origin.serve("/", .generated(seed: 2, length: length))
        let request = harness.request("/") {
            $0.headers.append("Range", "bytes=\(Self.part)-")
            $0.sink = .parts(PartPlan(expected: Int64(length)), after: 1)
            $0.judge = { $0.status == 206 ? .keep(at: PartPlan.usual) : .stop }
        }
        let result = try await harness.run(request)
        #expect(result.received == .parts(length: Int64(length)))
        let all = parts(harness, request) + [result.lastPart].compactMap(\.self)
        #expect(all.map(\.number) == [2, 3])
        expect(all, 2)
        #expect(all.last?.end == Int64(length))
    }

    @Test func `A restarted content begins with the first part`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 3, length: 100))
        let request = harness.request("/") { $0.sink = .parts(PartPlan(expected: nil), after: 1) }
        let result = try await harness.run(request)
        #expect(result.received == .parts(length: 100))
        #expect(result.lastPart?.number == 1 && result.lastPart?.bytes == Content.bytes(seed: 3, length: 100))
    }

    @Test func `A response that begins before a part's start is refused`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 3, length: 100))
        let request = harness.request("/") {
            $0.sink = .parts(PartPlan(expected: nil), after: 1)
            $0.judge = { _ in .keep(at: 77) }
        }
        #expect(try await harness.run(request).outcome == .failed(.prefixMissing))
    }

    @Test func `While a part is in flight, an eighth of the next one is read`() async throws {
        let harness = try EngineHarness()
        let length = 6 * Self.part
        harness.origin.serve("/", .generated(seed: 4, length: length))
        let request = harness.request("/") { $0.sink = .parts() }
        harness.engine.start(request)
        let reached = Int64(Self.part * 9 / 8)
        try await eventually("a part and an eighth") {
            harness.engine.progress(request.id).map { $0.length >= reached } == true
        }
        try await stays("no more", for: .milliseconds(300)) {
            harness.engine.progress(request.id).map { $0.length < reached + 1 << 17 } == true
        }
        #expect(parts(harness, request).count == 1)
        for number in 1...6 {
            harness.engine.recorded(request.id, upTo: Int64(number * Self.part))
            try await eventually("the next part") { parts(harness, request).count >= min(6, number + 1) }
        }
        let last = try await harness.result(of: request).lastPart
        #expect(last.map(\.number) == nil)
    }
    /// Bytes from an origin in the kernel's buffers of this process.
    private func waiting(from origin: OriginServer) -> Int {
        (0..<1024 as Range<Int32>).reduce(0) { sum, descriptor in
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutableBytes(of: &address) {
                getpeername(descriptor, $0.assumingMemoryBound(to: sockaddr.self).baseAddress, &size)
            }
            guard code == 0, UInt16(bigEndian: address.sin_port) == origin.port else { return sum }
            var count: Int32 = 0
            return ioctl(descriptor, UInt(FIONREAD), &count) == 0 ? sum + Int(count) : sum
        }
    }

    /// Whether the machine permits a receive buffer of 2 MiB; some machines report no limit.
    private static var canBoundBuffers: Bool {
        let limit = String(decoding: readFile("/proc/sys/net/core/rmem_max") ?? [], as: UTF8.self)
        return Int(limit.filter(\.isNumber)) ?? 0 >= 1 << 20
    }

    @Test(.enabled(if: canBoundBuffers))
    func `If the origin is faster than the store, at most 2 MiB wait besides`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 5, length: 16 * Self.part))
        let request = harness.request("/") { $0.sink = .parts() }
        harness.engine.start(request)
        // The kernel buffers more after fast reads.
        for number in 1...6 {
            try await eventually("part \(number)") { parts(harness, request).count >= number }
            harness.engine.recorded(request.id, upTo: Int64(number * Self.part))
        }
        try await eventually("bytes wait") { waiting(from: harness.origin) > 1 << 20 }
        try await stays("no more wait", for: .milliseconds(500)) { waiting(from: harness.origin) <= 2 << 20 }
        harness.engine.stop(request.id)
        _ = try await harness.result(of: request)
    }
}
