import Testing

@testable import Core

@Suite struct StallWatchTests {
    /// A session whose only task began to run at `now`, with an interval of ten seconds.
    private func watch() -> StallWatch {
        var watch = StallWatch()
        watch.interval = .seconds(10)
        watch.began(at: now)
        watch.follow(runningTasks: 1)
        return watch
    }

    private func judge(
        _ watch: inout StallWatch, at moment: Timestamp, since start: Timestamp = now, areWaiting: Bool = true
    ) -> StallWatch.Verdict { watch.judge(watchedSince: start, areWaiting: areWaiting, at: moment) }

    @Test func `A session stalls once, when its interval ends`() {
        var watch = watch()
        #expect(watch.checkAt == .after(10))
        #expect(judge(&watch, at: .after(10)) == .stalled(since: now))
        watch.follow(runningTasks: 1)
        #expect(watch.isStalled && watch.checkAt == nil)
        #expect(judge(&watch, at: .after(100)) == .notYet)
    }

    @Test func `Progress postpones a stall, and ends it`() {
        var watch = watch()
        watch.progressed(at: .after(4))
        watch.follow(runningTasks: 1)
        #expect(watch.checkAt == .after(10), "the index stays still")
        #expect(judge(&watch, at: .after(10)) == .notYet && watch.checkAt == .after(14))
        #expect(judge(&watch, at: .after(14)) == .stalled(since: .after(4)))
        watch.progressed(at: .after(20))
        watch.follow(runningTasks: 1)
        #expect(!watch.isStalled && watch.checkAt == .after(30))
    }

    @Test func `A task that begins to run starts its interval, and ends no stall`() {
        var watch = watch()
        watch.began(at: .after(8))
        #expect(judge(&watch, at: .after(10)) == .notYet && watch.checkAt == .after(18))
        #expect(judge(&watch, at: .after(18)) == .stalled(since: .after(8)))
        watch.began(at: .after(20))
        watch.follow(runningTasks: 2)
        #expect(watch.isStalled && watch.checkAt == nil)
    }

    @Test func `Waits that the app requested, and downtime of the service, are no stall`() {
        var watch = watch()
        #expect(judge(&watch, at: .after(10), areWaiting: false) == .notYet && watch.checkAt == .after(20))
        #expect(judge(&watch, at: .after(20), since: .after(15)) == .notYet && watch.checkAt == .after(25))
        #expect(judge(&watch, at: .after(25), since: .after(15)) == .stalled(since: .after(10)))
    }

    @Test func `A session without running tasks or without an interval is not watched`() {
        var watch = watch()
        watch.follow(runningTasks: 0)
        #expect(watch.checkAt == nil)
        watch.interval = nil
        watch.follow(runningTasks: 5)
        #expect(watch.checkAt == nil && judge(&watch, at: .after(99)) == .notYet)
    }

    @Test func `Each error of a stall is reported once, up to a limit`() {
        var stall = SessionStall()
        for _ in 0..<3 { stall.add(TaskError(.cannotConnectToHost)) }
        #expect(stall.errors.count == 1)
        for number in 0..<30 { stall.add(TaskError(.badServerResponse, "\(number)")) }
        #expect(stall.errors.count == SessionStall.errorsKept)
    }
}
