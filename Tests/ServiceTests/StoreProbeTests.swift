import Base
import Glibc
import TestSupport
import Testing

@testable import Service
@testable import Transfers

@Suite struct StoreProbeTests {
    @Test func `All requests within a second share one probe`() async {
        let probe = StoreProbe()
        let asked = Locked(0)
        @Sendable func reason(at now: Int64) async -> String? {
            await probe.reason(at: now) {
                Unreadiness(error: .storeUnavailable, detail: "\(asked.withLock { $0 += 1; return $0 })")
            }?.detail
        }
        for now in [0, 1, 999] as [Int64] { #expect(await reason(at: now) == "1") }
        for now in [1000, 1999] as [Int64] { #expect(await reason(at: now) == "2") }
    }

    @Test func `A request during a probe waits for its result`() async throws {
        let probe = StoreProbe()
        let (gate, asked) = (Doorbell(), Locked(0))
        let answers = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    await probe.reason(at: 0) {
                        asked.withLock { $0 += 1 }
                        await gate.wait(until: nil)
                        return Unreadiness(error: .insufficientStorage, detail: "full")
                    }?.detail
                }
            }
            group.addTask {
                while asked.withLock({ $0 }) == 0 { await Task.yield() }
                gate.ring()
                return "full"
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(answers.count == 21 && answers.allSatisfy { $0 == "full" })
        #expect(asked.withLock { $0 } == 1)
    }

    @Test func `Readiness requests write at most once a second`() async throws {
        try await ServiceStage.run { stage in
            func logLength() -> Int {
                var status = stat()
                return stat(stage.folder.file("data/db-wal"), &status) == 0 ? Int(status.st_size) : 0
            }
            _ = await stage.service.unreadiness()
            let before = logLength()
            let start = ContinuousClock.now
            for _ in 0..<100 { #expect(await stage.service.unreadiness() == nil) }
            let seconds = Int((ContinuousClock.now - start) / .seconds(1)) + 1
            // A commit adds a page or two; the janitor's own commits are few.
            #expect(logLength() - before <= (seconds + 8) * 2 * 8300, "\(seconds) s")
        }
    }
}
