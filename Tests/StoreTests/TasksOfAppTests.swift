import Core
import TestSupport
import Testing

@testable import Store

/// The list of an app's tasks of all sessions.
@Suite struct TasksOfAppTests {
    /// Two sessions of one app, whose tasks were created alternately, a second apart, and a task of another app.
    private struct Scene {
        let fixture: StoreFixture
        let app: AppID
        let sessions: [SessionRecord]
        private(set) var times: [Timestamp] = []

        init() async throws {
            fixture = try await StoreFixture()
            app = try await fixture.makeApp()
            let first = try await fixture.makeSession("first", app: app)
            let second = try await fixture.makeSession("second", app: app)
            sessions = [first, second]
            _ = try await fixture.create(fixture.download(), in: fixture.makeSession("stranger"))
            for number in 1...6 {
                fixture.advance(.seconds(1))
                times.append(fixture.now)
                let task = fixture.download(suspended: number > 4) {
                    $0.clientTaskId = "c\((number + 1) / 2)"
                    $0.group = number.isMultiple(of: 3) ? "third" : nil
                }
                _ = try await fixture.create(task, in: sessions[(number + 1) % 2])
            }
        }

        func tasks(
            _ filter: TaskFilter = TaskFilter(), _ span: ListSpan = ListSpan(), after id: Int64 = 0, limit: Int = 10
        ) async throws -> [TaskRecord] {
            try await fixture.store.tasks.list(
                of: app, filter, span, after: id, limit: limit, known: { _ in Never?.none }
            ).compactMap(\.task?.record)
        }

        /// Session and number of each.
        func names(
            _ filter: TaskFilter = TaskFilter(), _ span: ListSpan = ListSpan(), limit: Int = 10
        ) async throws -> [String] {
            try await tasks(filter, span, limit: limit).map { "\($0.sessionIdentifier)/\($0.number)" }
        }
    }

    private let all = ["first/1", "second/1", "first/2", "second/2", "first/3", "second/3"]

    @Test func `Tasks of all sessions of the app are listed in the order of their creation, from either end`()
        async throws
    {
        let scene = try await Scene()
        #expect(try await scene.names() == all)
        #expect(try await scene.names(TaskFilter(), ListSpan(.descending)) == all.reversed())
        let times = scene.times
        #expect(try await scene.names(TaskFilter(), ListSpan(createdAfter: times[1])) == Array(all[2...]))
        let between = ListSpan(.descending, createdAfter: times[0], createdBefore: times[4])
        #expect(try await scene.names(TaskFilter(), between) == all[1...3].reversed())
        for order in ListOrder.allCases {
            var (seen, last): ([Int64], Int64) = ([], 0)
            while let task = try await scene.tasks(TaskFilter(), ListSpan(order), after: last, limit: 1).first {
                last = task.id.rawValue
                seen.append(last)
            }
            #expect(try await scene.tasks(TaskFilter(), ListSpan(order)).map(\.id.rawValue) == seen)
        }
    }

    @Test func `Each filter covers all sessions, from either end`() async throws {
        let scene = try await Scene()
        let fixture = scene.fixture
        let claimed = try await fixture.claim().filter { $0.app == scene.app }.map(\.id).sorted {
            $0.rawValue < $1.rawValue
        }
        try #require(claimed.count == 4)
        try await fixture.settle(fixture.completion(claimed[0], .failed, bytes: nil), fixture.completion(claimed[1]))
        try await fixture.settle(fixture.completion(claimed[3], .failed, bytes: nil))
        let cases: [(TaskFilter, [String])] = [
            (TaskFilter(outcomes: [.failed]), [all[0], all[3]]), (TaskFilter(outcomes: [.succeeded]), [all[1]]),
            (TaskFilter(states: [.running]), [all[2]]), (TaskFilter(states: [.suspended]), [all[4], all[5]]),
            (TaskFilter(states: [.completed]), [all[0], all[1], all[3]]),
            (TaskFilter(group: "third"), [all[2], all[5]]),
            (TaskFilter(states: [.running], group: "third"), [all[2]]), (TaskFilter(group: "none"), []),
            (TaskFilter(clientTaskId: "c2"), [all[2], all[3]]),
            (TaskFilter(outcomes: [.failed], clientTaskId: "c2"), [all[3]]),
            (TaskFilter(states: [.running], outcomes: [.failed]), []),
            (TaskFilter(states: [.running, .completed]), Array(all[0...3])),
            (TaskFilter(states: Set(Core.TaskState.allCases)), all),
            (TaskFilter(outcomes: [.failed, .succeeded]), [all[0], all[1], all[3]]),
            (TaskFilter(states: [.completed, .running], outcomes: [.failed]), [all[0], all[3]]),
            (TaskFilter(states: [.running, .completed], clientTaskId: "c2"), [all[2], all[3]]),
        ]
        for (filter, names) in cases {
            #expect(try await scene.names(filter) == names, "\(filter)")
            #expect(try await scene.names(filter, ListSpan(.descending)) == names.reversed(), "\(filter)")
            #expect(try await scene.names(filter, limit: 1) == Array(names.prefix(1)), "\(filter)")
        }
    }

    @Test func `The tasks of a deleted session are skipped, whether or not they are removed yet`() async throws {
        let scene = try await Scene()
        _ = try await scene.fixture.store.sessions.forget(scene.sessions[0].id, at: scene.fixture.now)
        let left = all.filter { $0.hasPrefix("second") }
        // A full page may be followed by another.
        #expect(try await scene.names(limit: 2) == Array(left[..<2]))
        #expect(try await scene.names(TaskFilter(clientTaskId: "c1"), limit: 1) == ["second/1"])
        try await scene.fixture.clean()
        #expect(try await scene.names() == left)
    }
}
