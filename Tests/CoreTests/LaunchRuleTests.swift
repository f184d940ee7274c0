import Testing

@testable import Core

@Suite struct LaunchRuleTests {
    /// One finished, unacknowledged task, after a change.
    static func rule(_ change: (inout LaunchRule) -> Void = { _ in }) -> LaunchRule {
        var rule = LaunchRule()
        rule.lastCompletionSeq = 7
        change(&rule)
        return rule
    }

    @Test func `The last completion launches`() {
        #expect(Self.rule().evaluate(at: now) == .launch(.tasksFinished))
    }

    @Test func `Without a cause there is no launch`() {
        #expect(LaunchRule().evaluate(at: now) == .no)
        #expect(Self.rule { $0.sendsLaunchEvents = false }.evaluate(at: now) == .no)
        #expect(Self.rule { $0.unfinishedTasks = 1 }.evaluate(at: now) == .no)
        #expect(Self.rule { $0.acknowledgedSeq = 7 }.evaluate(at: now) == .no)
        #expect(Self.rule { $0.acknowledgedSeq = 6 }.evaluate(at: now) == .launch(.tasksFinished))
        #expect(Self.rule { $0.exhaustedThroughSeq = 7 }.evaluate(at: now) == .no)
    }

    @Test func `A question launches while tasks run`() {
        let asked = Self.rule {
            $0.unfinishedTasks = 3
            $0.unansweredChallengeSeq = 9
        }
        #expect(asked.evaluate(at: now) == .launch(.authenticationRequired))
        let both = Self.rule {
            $0.unansweredDelayedRequestSeq = 8
            $0.unansweredChallengeSeq = 9
        }
        #expect(both.evaluate(at: now) == .launch([.tasksFinished, .authenticationRequired, .delayedRequestReady]))
        let seen = Self.rule {
            $0.acknowledgedSeq = 8
            $0.unansweredDelayedRequestSeq = 8
        }
        #expect(seen.evaluate(at: now) == .no)
    }

    @Test func `A stall launches while tasks run`() {
        let stalled = Self.rule {
            $0.unfinishedTasks = 3
            $0.lastStallSeq = 9
        }
        #expect(stalled.evaluate(at: now) == .launch(.tasksStalled))
        let acknowledged = Self.rule {
            $0.acknowledgedSeq = 9
            $0.lastStallSeq = 9
        }
        #expect(acknowledged.evaluate(at: now) == .no)
    }

    @Test func `An open launch gets the new reason, and no further webhook is sent`() {
        let open = Self.rule {
            $0.hasOpenLaunch = true
            $0.isAttached = true
        }
        #expect(open.evaluate(at: now) == .join(.tasksFinished))
    }

    @Test func `Attached clients and clients within the grace period are not launched`() {
        #expect(Self.rule { $0.isAttached = true }.evaluate(at: now) == .notNow(until: nil))
        let gone = Self.rule { $0.lastDetachedAt = now }
        #expect(gone.evaluate(at: .after(4.999)) == .notNow(until: .after(5)))
        #expect(gone.evaluate(at: .after(5)) == .launch(.tasksFinished))
    }

    @Test func `Times from before the clock was set back do not delay a launch`() {
        #expect(Self.rule { $0.lastDetachedAt = .after(3600) }.evaluate(at: now) == .launch(.tasksFinished))
        #expect(Self.rule { $0.notBefore = .after(3600) }.evaluate(at: now) == .launch(.tasksFinished))
        // A detachment during the transaction, and the longest wait.
        #expect(Self.rule { $0.lastDetachedAt = .after(1) }.evaluate(at: now) == .notNow(until: .after(6)))
        #expect(Self.rule { $0.notBefore = .after(600) }.evaluate(at: now) == .notNow(until: .after(600)))
    }

    @Test func `Completions that acknowledge nothing delay the next launch`() {
        let waits = (0...10).map { LaunchRule.backoff(idleCompletions: $0).seconds }
        #expect(waits == [0, 5, 10, 20, 40, 80, 160, 320, 600, 600, 600])
        #expect(LaunchRule.backoff(idleCompletions: .max) == .seconds(600))
        let slowed = Self.rule {
            $0.notBefore = .after(20)
            $0.lastDetachedAt = now
        }
        #expect(slowed.evaluate(at: .after(6)) == .notNow(until: .after(20)))
        #expect(slowed.evaluate(at: .after(20)) == .launch(.tasksFinished))
    }
}
