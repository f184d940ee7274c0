import Base

/// Work for the disk threads: each takes what ``DiskTurns`` says.
final class DiskWork: Sendable {
    /// Does a piece of work; says whether there is more of it, which then waits for its next turn.
    typealias Step = @Sendable () -> Bool

    private typealias Piece = (work: Step, length: DiskWorkLength, owner: Int64)

    private struct State {
        var turns: DiskTurns<Step>
        var isClosed = false
    }

    private let state: Monitor<State>

    init(threads: Int) { state = Monitor(State(turns: DiskTurns(threads: threads))) }

    /// False after the end was announced: the work is not done.
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

    /// The life of one thread: works until the end was announced and nothing is left.
    func run() {
        while let (step, length, owner) = take() {
            let hasMore = step()
            state.withLock { state in
                state.turns.end(length)
                if hasMore { state.turns.add(step, length, for: owner) }
            }
            // A thread may wait for the end of another's long work.
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
