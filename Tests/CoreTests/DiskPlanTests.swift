import Formats
import TestSupport
import Testing

@testable import Core

@Suite struct DiskPlanTests {
    private func waiting(_ task: Int64, kept: Int64 = 0, needed: Int64, isReady: Bool = true) -> DiskPlan.Waiting {
        DiskPlan.Waiting(task: TaskID(task), kept: kept, needed: needed, isReady: isReady)
    }

    private func next(_ room: Int64, _ waiting: DiskPlan.Waiting..., othersWait: Bool = false) -> DiskPlan.Step {
        DiskPlan.next(room: room, waiting: waiting, othersWait: othersWait)
    }

    private func tasks(_ numbers: Int64...) -> DiskPlan.Step { .goOn(numbers.map { TaskID($0) }) }

    @Test func `The tasks that need the least resume first, as many as fit together`() {
        #expect(next(10, waiting(1, needed: 6), waiting(2, needed: 3), waiting(3, needed: 5)) == tasks(2, 3))
        #expect(next(10, waiting(1, needed: 5), waiting(2, needed: 5)) == tasks(1, 2))
        #expect(next(4, waiting(1, needed: 5)) == .wait)
        #expect(next(0) == .wait)
    }

    @Test func `A task that has just failed waits a while, and no other task is emptied meanwhile`() {
        let hasty = waiting(1, kept: 2, needed: 3, isReady: false)
        #expect(next(3, hasty, waiting(2, kept: 9, needed: 9)) == .wait)
        #expect(next(9, hasty, waiting(2, needed: 5)) == tasks(2))
    }

    @Test func `If no task fits, the task with the most missing bytes is emptied`() {
        #expect(next(0, waiting(1, kept: 5, needed: 3), waiting(2, kept: 5, needed: 8)) == .empty(TaskID(2)))
        // Of two tasks with the same need the later one is emptied.
        #expect(next(0, waiting(1, kept: 5, needed: 5), waiting(2, kept: 5, needed: 5)) == .empty(TaskID(2)))
        // A task without kept bytes cannot be emptied.
        #expect(
            next(0, waiting(1, kept: 5, needed: 3), waiting(2, kept: 4, needed: 2), waiting(3, needed: 9))
                == .empty(TaskID(1)))
    }

    @Test func `Several tasks are emptied if one is not enough, one by one`() {
        let (least, middle, most) = (
            waiting(1, needed: 7), waiting(2, kept: 4, needed: 8), waiting(3, kept: 4, needed: 9)
        )
        #expect(next(0, least, middle, most) == .empty(TaskID(3)))
        #expect(next(4, least, middle, waiting(3, needed: 13)) == .empty(TaskID(2)))
        #expect(next(8, least, waiting(2, needed: 12), waiting(3, needed: 13)) == tasks(1))
    }

    @Test func `No task is emptied in vain`() {
        #expect(next(0, waiting(1, kept: 5, needed: 3)) == .wait)
        #expect(next(-10, waiting(1, kept: 5, needed: 3), waiting(2, kept: 5, needed: 8)) == .wait)
        #expect(next(0, waiting(1, needed: 30), waiting(2, kept: 5, needed: 40)) == .wait)
    }

    @Test func `A single task is emptied for tasks that have not begun`() {
        #expect(next(0, waiting(1, kept: 5, needed: 3), othersWait: true) == .empty(TaskID(1)))
        #expect(next(-5, waiting(1, kept: 5, needed: 3), othersWait: true) == .wait)
        #expect(next(0, waiting(1, needed: 3), othersWait: true) == .wait)
    }

    @Test func `Emptying always ends, and lets a task resume`() {
        var random = SeededGenerator(state: 5)
        for _ in 0..<2000 {
            var room = Int64.random(in: -20...20, using: &random)
            var all = (1...Int64.random(in: 1...6, using: &random)).map {
                waiting($0, kept: .random(in: 0...20, using: &random), needed: .random(in: 1...40, using: &random))
            }
            let othersWait = Bool.random(using: &random) && room <= 0
            var emptied = 0
            while case .empty(let task) = DiskPlan.next(room: room, waiting: all, othersWait: othersWait && room <= 0) {
                guard let index = all.firstIndex(where: { $0.task == task }) else {
                    Issue.record("\(task) does not wait")
                    return
                }
                #expect(all[index].kept > 0)
                room += all[index].kept
                all[index].needed += all[index].kept
                all[index].kept = 0
                emptied += 1
                #expect(emptied <= 6)
            }
            guard emptied > 0 else { continue }
            let helped = all.contains { $0.needed <= room } || (othersWait && room > 0)
            #expect(helped, "\(all) with \(room)")
        }
    }

    @Test func `A task fails if its content can never fit or was lost too often, and waits otherwise`() {
        func judge(_ total: Int64?, kept: Int64 = 0, reached: Int64 = 0, losses: Int = 0) -> DiskPlan.Verdict {
            DiskPlan.judge(total: total, kept: kept, reached: reached, losses: losses, largest: 100)
        }
        #expect(judge(101) == .neverFits)
        #expect(judge(.max) == .neverFits)
        #expect(judge(100) == .waits(needed: 100))
        #expect(judge(100, kept: 60, reached: 60) == .waits(needed: 40))
        // An unknown total is estimated as twice the received bytes.
        #expect(judge(nil, kept: 30, reached: 30) == .waits(needed: 30))
        #expect(judge(nil, kept: 0, reached: 30) == .waits(needed: 60))
        #expect(judge(nil, kept: 0, reached: 80) == .waits(needed: 100))
        #expect(judge(nil) == .waits(needed: 1))
        #expect(judge(50, losses: DiskPlan.lossLimit) == .waits(needed: 50))
        #expect(judge(50, losses: DiskPlan.lossLimit + 1) == .lostTooOften)
    }

    @Test func `A task without progress is tried with growing delays`() {
        let delays = (0...12).map { DiskPlan.delay(afterPauses: $0) }
        #expect(delays[...4] == [.zero, .zero, .seconds(5), .seconds(10), .seconds(20)])
        #expect(delays.last == .seconds(600) && DiskPlan.delay(afterPauses: .max) == .seconds(600))
    }

    @Test func `Discarding a content removes its resume point and its segments`() {
        var progress = TaskProgress()
        let record = SegmentRecord {
            $0.total = 100
            $0.held = [HeldRange(0, 40)]
        }
        progress.kept = .segments(record, ResumePoint(), source: 2)
        progress.loseContent()
        #expect(progress.keptOffset == 0 && progress.kept == .none)
        #expect(progress.bytesFetchedTwice == 40 && progress.diskLosses == 1)
    }
}
