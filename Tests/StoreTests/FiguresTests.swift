import Core
import Store
import TestSupport
import Testing

@Suite struct FiguresTests {
    @Test func `Tasks are counted by phase`() async throws {
        let fixture = try await StoreFixture()
        let session = try await fixture.makeSession()
        #expect(try await fixture.store.upkeep.figures().tasks.values.allSatisfy { $0 == 0 })
        try await fixture.create([fixture.download(), fixture.download()], in: session)
        let begun = fixture.now
        #expect(try await fixture.store.upkeep.figures().tasks[.queued] == 2)
        #expect(try await fixture.store.upkeep.figures().oldestQueued == begun)
        #expect(try await fixture.claim(1).count == 1)
        try await fixture.create([fixture.download(suspended: true)], in: session)
        let figures = try await fixture.store.upkeep.figures()
        let counted = [StoreFigures.Phase.active: 1, .queued: 1, .suspended: 1]
        for phase in StoreFigures.Phase.allCases {
            #expect(figures.tasks[phase] == Int64(counted[phase] ?? 0), "\(phase)")
        }
    }

    @Test func `Unfinished launches are counted by state`() async throws {
        let stage = try await LaunchStage()
        try await stage.finishTask(in: "a")
        try await stage.finishTask(in: "b")
        #expect(try await stage.store.upkeep.figures().launches[.pending] == 2)
        #expect(try await stage.claim(limit: 1).count == 1)
        let figures = try await stage.store.upkeep.figures()
        #expect(figures.launches == [.pending: 1, .delivering: 1, .launched: 0, .parked: 0])
    }
}
