import Core

/// The changes of state that rows can show: those that the machines make when each event meets each state.
///
/// Named as the database's hook names them: `TABLE: STATE -> STATE`, with `new` and `gone` for rows that appear and end.
enum Coverage {
    static let possible: Set<String> = Set(lives + launches + questions + sessions + versions)

    /// A summary of the changes that a campaign has met.
    static func report(_ counts: [String: Int]) -> String {
        let missing = possible.filter { counts[$0] == nil }.sorted()
        let share = 100 * (possible.count - missing.count) / possible.count
        return "changes of state: \(possible.count - missing.count) of \(possible.count) (\(share) %)"
            + (missing.isEmpty ? "" : ", without \(missing.joined(separator: "; "))")
    }

    private static let now = Timestamp(milliseconds: 1_000_000)
    private static let later = now + .seconds(10)

    private static func changes(_ table: String, _ pairs: [(from: String?, to: String?)]) -> [String] {
        pairs.filter { $0.from != $0.to }.map { "\(table): \($0.from ?? "new") -> \($0.to ?? "gone")" }
    }

    private static var lives: [String] {
        let (question, result) = (QuestionID(1, publicId: "q"), TaskResult())
        let stages: [TaskLife.Stage] = [
            .delayed(until: later), .queued, .quarantined, .active, .retryWait(until: later),
            .waitingForConnectivity(until: later), .waitingForDisk(needed: 1, kept: 0, notBefore: later),
            .awaitingAnswer(question), .following,
        ]
        let states =
            stages.map { TaskLife.running($0, deadline: later) } + [
                .suspended(remaining: .seconds(1), question: nil),
                .suspended(remaining: .seconds(1), question: question),
            ]
        let events: [TaskLife.Event] = [
            .suspend, .resume(beginsAt: nil), .resume(beginsAt: later),
            .reschedule(beginsAt: nil, timeout: .seconds(1)), .reschedule(beginsAt: later, timeout: .seconds(1)),
            .due, .claim, .retry(at: later, waitsForConnectivity: false), .retry(at: later, waitsForConnectivity: true),
            .ask(question), .follow, .noRoom(needed: 1, kept: 0, notBefore: later), .emptied, .answered, .interrupted,
            .cleared, .suspected, .finish(.succeeded, result), .end(.cancelled, result),
        ]
        var pairs: [(from: String?, to: String?)] = [(nil, "queued"), (nil, "delayed"), (nil, "suspended")]
        for state in states {
            for event in events {
                for isSuspect in [false, true] {
                    var life = state
                    guard (try? life.handle(event, isSuspect: isSuspect, at: now)) != nil else { continue }
                    pairs.append((state.phase?.rawValue, life.phase?.rawValue))
                }
            }
        }
        return changes("live", pairs)
    }

    private static var launches: [String] {
        let states: [LaunchState] = [1, LaunchSchedule.standard.delays.count + 1].flatMap { attempts -> [LaunchState] in
            [
                .pending(attempts: attempts, nextAttemptAt: now), .delivering(attempt: attempts, leaseUntil: now),
                .launched(attempts: attempts, deadline: now), .parked(attempts: attempts, reason: .paused),
                .exhausted(attempts: attempts, at: now),
            ]
        }
        let failure = LaunchState.Failure(jitter: 0)
        let events: [LaunchState.Event] = [
            .claim(leaseUntil: later), .succeeded(deadline: later), .failed(failure), .deadlinePassed(failure),
            .interrupted, .leaseExpired, .complete, .clientAttached, .park(.paused), .sessionEnded,
            .putOff(until: later), .enabled(nextAttemptAt: later), .redeliver,
        ]
        var pairs: [(from: String?, to: String?)] = [(nil, "pending"), (nil, "parked")]
        for state in states {
            for event in events {
                var launch = state
                guard (try? launch.handle(event, at: now)) != nil else { continue }
                pairs.append((state.phase.rawValue, launch.phase.rawValue))
            }
        }
        return changes("launch", pairs)
    }

    private static var questions: [String] {
        changes("question", [(nil, "open"), ("open", "answered"), ("open", "expired")])
    }

    private static var sessions: [String] {
        changes(
            "session",
            [(nil, "active"), ("active", "invalidating"), ("active", "invalid"), ("invalidating", "invalid")])
    }

    private static var versions: [String] {
        let pairs = SetVersionState.allCases.flatMap { state in
            SetVersionState.Event.allCases.map {
                (from: String?.some(state.rawValue), to: String?.some(state.after($0).rawValue))
            }
        }
        return changes("set_version", [(nil, "expanding")] + pairs)
    }
}
