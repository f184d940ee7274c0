package import Base
package import Core
import Synchronization

/// The bytes of one task that can be read before it is completed, as this node knows them.
package final class Arrival: Sendable {
    private struct State: Sendable {
        var content: ArrivingContent?
        var response: TaskResponse?
        var isOver = false
        var isFollowing = false
        /// The number of readers here that wait for the byte at an offset.
        var waits: [Int64: Int] = [:]
    }

    private let state = Locked(State())
    /// The version that this process has begun to write into the partial file; 0 while it has only continued one.
    private let begun = Atomic<Int64>(0)

    /// In place of a version: another task continues the file.
    private static let isPassedOn: Int64 = -1

    /// Records that bytes of another version follow. Called on a thread of the engine, before the first of them is
    /// written over the file.
    func begin(_ version: Int64) { begun.store(version, ordering: .sequentiallyConsistent) }

    private var begunVersion: Int64 { begun.load(ordering: .sequentiallyConsistent) }

    /// Whether the task's transfers have written no other version into the partial file up to now.
    package func isOnly(_ version: Int64) -> Bool { [0, version, Self.isPassedOn].contains(begunVersion) }

    /// Whether the task writes no more bytes into the partial file: it is completed, or another task has the file.
    package var isLeft: Bool { begunVersion == Self.isPassedOn || state.withLock { $0.isOver } }

    /// Whether the task waits for the bytes of another one.
    package internal(set) var isFollowing: Bool {
        get { state.withLock { $0.isFollowing } }
        set { state.withLock { $0.isFollowing = newValue } }
    }

    fileprivate func pass() { begin(Self.isPassedOn) }

    /// `nil` if no byte can be read here before the task is completed.
    package var content: ArrivingContent? {
        guard !isLeft else { return nil }
        return state.withLock { $0.content }.flatMap { isOnly($0.version) ? $0 : nil }
    }

    /// The origin's response that the bytes belong to, if this process has received its head.
    package var response: TaskResponse? { state.withLock { $0.response } }

    /// Whether readers have been shown neither bytes nor a response.
    var isBlank: Bool { state.withLock { $0.content == nil && $0.response == nil } }

    /// The most offsets that are reported to other nodes.
    private static let mostWaits = 16

    /// The lowest offsets of bytes for which readers here wait.
    var waits: [Int64] { state.withLock { Array($0.waits.keys.sorted().prefix(Self.mostWaits)) } }

    package func beginWait(for offset: Int64) { state.withLock { $0.waits[offset, default: 0] += 1 } }

    package func endWait(for offset: Int64) {
        state.withLock { state in
            let others = (state.waits[offset] ?? 1) - 1
            state.waits[offset] = others > 0 ? others : nil
        }
    }

    fileprivate func note(_ content: ArrivingContent?, _ response: TaskResponse?) {
        state.withLock {
            $0.content = content
            $0.response = response ?? $0.response
        }
    }

    fileprivate func end() { state.withLock { $0.isOver = true } }
}

/// The arrivals of the tasks that are transferred or read on this node.
package final class Arrivals: Sendable {
    private struct Entry {
        weak var arrival: Arrival?
        /// Keeps an arrival with bytes between two attempts.
        var kept: Arrival?
    }

    private struct State {
        var entries: [TaskID: Entry] = [:]
        /// The number of entries at which those without a transfer or reader are removed.
        var limit = 1024
    }

    private let state = Locked(State())
    package let changes: Broadcast<TaskID>

    init(clock: Clock) { changes = Broadcast(clock: clock) }

    /// The arrival of a task, kept by the transfer and by readers.
    package func arrival(of task: TaskID) -> Arrival {
        state.withLock { state in
            if let arrival = state.entries[task]?.arrival { return arrival }
            if state.entries.count >= state.limit {
                for task in state.entries.keys { state.entries[task]?.kept = nil }
                state.entries = state.entries.filter { $0.value.arrival != nil }
                state.limit = max(1024, 2 * state.entries.count)
            }
            let arrival = Arrival()
            state.entries[task] = Entry(arrival: arrival)
            return arrival
        }
    }

    /// The bytes of a task that can be read here before it is completed, if it is transferred or read here.
    package func content(of task: TaskID) -> ArrivingContent? { state.withLock { $0.entries[task]?.arrival }?.content }

    /// The offsets of bytes for which readers of a task wait here.
    package func waits(of task: TaskID) -> [Int64] { state.withLock { $0.entries[task]?.arrival }?.waits ?? [] }

    /// - Parameter response: `nil` for the same one as before.
    package func note(_ content: ArrivingContent?, _ response: TaskResponse? = nil, of task: TaskID) {
        let arrival = state.withLock { state in
            guard let arrival = state.entries[task]?.arrival else { return nil as Arrival? }
            state.entries[task]?.kept = content.map { _ in arrival }
            return arrival
        }
        arrival?.note(content, response)
        changes.signal(task)
    }

    /// Records that a task continues the partial file of another one, before it writes the first byte.
    ///
    /// - Parameter version: The number of the bytes.
    func pass(from former: TaskID?, to task: TaskID, version: Int64) {
        let (before, after) = state.withLock { state in
            (former.flatMap { state.entries[$0]?.arrival }, state.entries[task]?.arrival)
        }
        before?.pass()
        after?.begin(version)
        if let former { changes.signal(former) }
    }

    /// Records that a task waits for the bytes of another one.
    func follows(_ task: TaskID) {
        state.withLock { $0.entries[task]?.arrival }?.isFollowing = true
        changes.signal(task)
    }

    /// Records that a task is completed.
    package func completed(_ task: TaskID) {
        state.withLock { $0.entries.removeValue(forKey: task) }?.arrival?.end()
        changes.signal(task)
    }
}
