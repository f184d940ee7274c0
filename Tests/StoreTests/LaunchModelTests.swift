import Core
import Glibc
import TestSupport
import Testing

/// Every order of steps of sessions, clients, receivers, the clock and a crash in a small world.
///
/// `make test-all` explores a larger world (`LAUNCH_MODEL=large`), and `make soak` the largest. No engine is involved.
@Suite(.enabled(if: !TestStore.isOnServer)) struct LaunchModelTests {
    private static var scopes: [(name: String, scope: LaunchModel.Scope)] {
        func isSet(_ name: String, _ value: String) -> Bool { getenv(name).map { String(cString: $0) } == value }
        if isSet("SOAK", "1") { return large + largest }
        return isSet("LAUNCH_MODEL", "large") ? large : small
    }

    /// Sessions with one task each. Clients, failures, questions and a crash are shared.
    static let small = [
        scope("failures, parts and redeliveries") {
            ($0.tasks, $0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (1, 0, 2, 1, 0, 1)
        },
        scope("questions") {
            ($0.tasks, $0.crashes, $0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) =
                (1, 0, 0, 0, 0, 1, 1)
        },
        scope("a client of two sessions") {
            ($0.tasks, $0.clients, $0.crashes, $0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) =
                (1, 1, 0, 1, 0, 0, 0, 0)
        },
        scope("two clients of one session") {
            ($0.sessions, $0.tasks, $0.crashes, $0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) =
                (1, 1, 0, 2, 1, 0, 0, 0)
        },
    ]

    /// The same with two tasks in each session, and two clients.
    static let large = [
        scope("failures, parts and redeliveries") {
            ($0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (0, 2, 1, 0, 1)
        },
        scope("questions") { ($0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (0, 0, 0, 1, 1) },
        scope("a client of two sessions") {
            ($0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (1, 0, 0, 0, 0)
        },
        scope("two clients of one session") {
            ($0.sessions, $0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (1, 2, 1, 0, 0, 0)
        },
    ]

    static let largest = [
        scope("two clients of two sessions") {
            ($0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (2, 0, 0, 0, 0)
        },
        scope("a client of two sessions, a failure") {
            ($0.arrivals, $0.failures, $0.parts, $0.questions, $0.redeliveries) = (1, 1, 0, 0, 0)
        },
        scope("everything in one session") { $0.sessions = 1 },
    ]

    private static func scope(
        _ name: String, _ change: (inout LaunchModel.Scope) -> Void
    ) -> (name: String, scope: LaunchModel.Scope) {
        var scope = LaunchModel.Scope()
        change(&scope)
        return (name, scope)
    }

    @Test(arguments: scopes)
    func `In every order of events no launch is doubled, lost or left over`(
        _ row: (name: String, scope: LaunchModel.Scope)
    ) async throws {
        let began = ContinuousClock.now
        let exploration = Exploration(row.scope)
        try await exploration.run()
        print(
            "launch model, \(row.name): \(exploration.count) states, \(exploration.transitions) transitions, "
                + "\(ContinuousClock.now - began)")
    }
}

/// A breadth-first walk through all states that records the path to each.
final class Exploration {
    private var identifiers: [[UInt8]: Int32] = [:]
    private var frontier: [(id: Int32, state: LaunchModel)] = []
    private var origins: [(from: Int32, step: LaunchModel.Step?)] = []
    /// The next state of a fair world for each state; -1 for none, if everything is done.
    private var fair: [Int32] = []
    private(set) var transitions = 0

    var count: Int { identifiers.count }

    init(_ scope: LaunchModel.Scope) {
        _ = enter(LaunchModel(scope), from: -1, nil)
    }

    private func enter(_ state: LaunchModel, from: Int32, _ step: LaunchModel.Step?) -> Int32 {
        let key = state.key
        if let known = identifiers[key] { return known }
        let id = Int32(identifiers.count)
        identifiers[key] = id
        origins.append((from, step))
        fair.append(-2)
        frontier.append((id, state))
        return id
    }

    func run() async throws {
        var next = 0
        while next < frontier.count {
            let (id, state) = frontier[next]
            next += 1
            // Other tests share the threads, and have deadlines.
            if id % 256 == 0 { await Task.yield() }
            // The explored part is no longer needed.
            if next == 50_000 {
                frontier.removeFirst(next)
                next = 0
            }
            let fairStep = state.fairStep()
            for step in state.steps() {
                transitions += 1
                var after = state
                do {
                    try after.take(step)
                } catch {
                    Issue.record("\(error) after \(path(to: id)), \(step)")
                    return
                }
                let reached = enter(after, from: id, step)
                if step == fairStep { fair[Int(id)] = reached }
            }
            if fair[Int(id)] == -2 {
                guard state.isDrained || fairStep == nil else {
                    Issue.record("the fair step \(String(describing: fairStep)) is none, after \(path(to: id))")
                    return
                }
                fair[Int(id)] = -1
            }
            if fair[Int(id)] == -1 || fairStep == .tick, state.isDrained { fair[Int(id)] = -1 }
            if fair[Int(id)] == -1, !state.isDrained {
                Issue.record("a dead end after \(path(to: id))")
                return
            }
        }
        checkDraining()
    }

    /// From each state the fair path ends in a drained state, without a cycle.
    private func checkDraining() {
        var isGood = [Bool](repeating: false, count: fair.count)
        for start in fair.indices {
            var way: [Int] = []
            var place = start
            while !isGood[place], fair[place] >= 0 {
                way.append(place)
                place = Int(fair[place])
                guard way.count <= fair.count else { break }
                if way.count > 500 {
                    Issue.record("it is never drained after \(path(to: Int32(start)))")
                    return
                }
            }
            for place in way { isGood[place] = true }
        }
    }

    private func path(to id: Int32) -> String {
        var (steps, place): ([LaunchModel.Step], Int32) = ([], id)
        while place >= 0 {
            let origin = origins[Int(place)]
            if let step = origin.step { steps.append(step) }
            place = origin.from
        }
        return steps.reversed().map { "\($0)" }.joined(separator: ", ")
    }
}
