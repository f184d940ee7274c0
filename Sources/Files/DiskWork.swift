import Base

/// The queue of the disk threads, in the order of ``DiskTurns``.
final class DiskWork: Sendable {
    /// Performs a step of work; returns whether more steps follow, each of which waits for its turn.
    typealias Step = @Sendable () -> Bool

    private typealias Piece = (work: Step, length: DiskWorkLength, owner: Int64)

    private struct State {
        var turns: DiskTurns<Step>
        var isClosed = false
    }

    private let state: Monitor<State>

    init(threads: Int) { state = Monitor(State(turns: DiskTurns(threads: threads))) }

    /// Adds work. False after ``close()``: the work is not done.
    func add(_ step: @escaping Step, _ length: DiskWorkLength, for owner: Int64) -> Bool {
        let isTaken = state.withLock { state in
            if !state.isClosed { state.turns.add(step, length, for: owner) }
            return !state.isClosed
        }
        if isTaken { state.wakeOne() }
        return isTaken
    }

    /// Lets the threads end when all work is done.
    func close() {
        state.withLock { $0.isClosed = true }
        state.wakeAll()
    }

    /// The main function of a thread: works until the queue is closed and empty.
    func run() {
        while let (step, length, owner) = take() {
            let hasMore = step()
            state.withLock { state in
                state.turns.end(length)
                if hasMore { state.turns.add(step, length, for: owner) }
            }
            // Another thread may wait for the end of this long work.
            if length == .long { state.wakeAll() }
        }
    }

    private func take() -> Piece? {
        state.wait { state -> Piece?? in
            if let piece = state.turns.next() { return piece }
            return state.isClosed && state.turns.isEmpty ? .some(nil) : nil
        }
    }
}
