import TestSupport
import Testing

@testable import Core

struct TaskStageTests {
    private static let events: [TaskStage.Event] = [
        .suspend, .resume(beginsLater: false, hasOpenQuestion: false),
        .resume(beginsLater: true, hasOpenQuestion: false),
        .resume(beginsLater: false, hasOpenQuestion: true), .resume(beginsLater: true, hasOpenQuestion: true), .due,
        .claim, .retry(waitsForConnectivity: false), .retry(waitsForConnectivity: true), .ask, .answered, .interrupted,
        .cleared, .noRoom,
    ]

    /// Where each event leads, in the order of `events`; nil where it is refused.
    private static let table: [TaskStage: [TaskStage?]] = [
        .suspended: [
            .suspended, .queued, .delayed, .awaitingAnswer, .awaitingAnswer, nil, nil, nil, nil, nil, nil, nil, nil,
            nil,
        ],
        .delayed: [
            .suspended, .delayed, .delayed, .delayed, .delayed, .queued, nil, nil, nil, nil, nil, nil, nil, nil,
        ],
        .queued: [.suspended, .queued, .queued, .queued, .queued, nil, .active, nil, nil, nil, nil, nil, nil, nil],
        .quarantined: [
            .suspended, .quarantined, .quarantined, .quarantined, .quarantined, nil, .active, nil, nil, nil, nil, nil,
            .queued, nil,
        ],
        .active: [
            .suspended, .active, .active, .active, .active, nil, nil, .retryWait, .waitingForConnectivity,
            .awaitingAnswer, nil, .queued, nil, .waitingForDisk,
        ],
        .retryWait: [.suspended, .queued, .queued, .queued, .queued, .queued, nil, nil, nil, nil, nil, nil, nil, nil],
        .waitingForConnectivity: [
            .suspended, .queued, .queued, .queued, .queued, .queued, nil, nil, nil, nil, nil, nil, nil, nil,
        ],
        .awaitingAnswer: [
            .suspended, .awaitingAnswer, .awaitingAnswer, .awaitingAnswer, .awaitingAnswer, nil, nil, nil, nil, nil,
            .queued, nil, nil, nil,
        ],
        .waitingForDisk: [
            .suspended, .waitingForDisk, .waitingForDisk, .waitingForDisk, .waitingForDisk, .queued, nil, nil, nil, nil,
            nil, nil, nil, nil,
        ],
    ]

    @Test(arguments: TaskStage.allCases)
    func `every event has its one place to go, or is refused and changes nothing`(_ stage: TaskStage) throws {
        let row = try #require(Self.table[stage])
        for (event, expected) in zip(Self.events, row) {
            var next = stage
            if let expected {
                _ = try next.handle(event)
                #expect(next == expected, "\(stage) on \(event)")
            } else {
                #expect(throws: Refused.self, "\(stage) on \(event)") { try next.handle(event) }
                #expect(next == stage)
            }
        }
    }

    @Test(arguments: TaskStage.allCases)
    func `a suspect is quarantined wherever another is queued`(_ stage: TaskStage) throws {
        let row = try #require(Self.table[stage])
        for (event, expected) in zip(Self.events, row) {
            guard let expected else { continue }
            var next = stage
            _ = try next.handle(event, isSuspect: true)
            #expect(next == (expected == .queued ? .quarantined : expected), "\(stage) on \(event)")
        }
    }

    @Test
    func `only suspending what is active stops a transfer`() throws {
        for stage in TaskStage.allCases {
            for event in Self.events {
                var next = stage
                guard let effect = try? next.handle(event) else { continue }
                #expect((effect == .stopTransfer) == (stage == .active && event == .suspend), "\(stage) on \(event)")
            }
        }
    }

    @Test
    func `clients see suspended or running, and waiting stages have a date`() {
        for stage in TaskStage.allCases {
            #expect(stage.state == (stage == .suspended ? .suspended : .running))
            #expect(stage.hasDueDate == [.delayed, .retryWait, .waitingForConnectivity].contains(stage))
        }
    }

    @Test
    func `on a random walk a task is active only after a claim, and a suspension always holds`() throws {
        var random = SeededGenerator(state: 11)
        var stage = TaskStage.queued
        for _ in 0..<20_000 {
            let event = try #require(Self.events.randomElement(using: &random))
            let before = stage
            guard (try? stage.handle(event)) != nil else {
                #expect(stage == before)
                continue
            }
            if stage == .active { #expect(before == .active || (before == .queued && event == .claim)) }
            if event == .suspend { #expect(stage == .suspended) }
            if before == .suspended, stage != .suspended {
                guard case .resume = event else {
                    Issue.record("left suspended by \(event)")
                    return
                }
            }
        }
    }
}
