import Base

/// Memory for the parts of objects that are longer than usual, as those of contents over 78 GiB are: one budget for all
/// that are gathered and sent at a time, whatever lengths origins announce.
///
/// An app has half of it at most, and who asks first is served first. What is longer than all of it is gathered alone.
package final class PartMemory: Sendable {
    /// Bytes of a part, until the last reference to them is gone.
    package final class Grant: Sendable {
        private let memory: PartMemory
        fileprivate let app: Int64
        fileprivate let count: Int64

        fileprivate init(_ count: Int64, of app: Int64, _ memory: PartMemory) {
            self.count = count
            self.app = app
            self.memory = memory
        }

        deinit { memory.release(count, of: app) }
    }

    /// The place of one that gathers parts, one after the other. It waits in the queue until it is let go.
    package final class Seat: Sendable {
        private let memory: PartMemory
        private let number: UInt64
        private let app: Int64
        private let wake: @Sendable () -> Void

        fileprivate init(_ number: UInt64, of app: Int64, _ memory: PartMemory, wake: @escaping @Sendable () -> Void) {
            self.number = number
            self.app = app
            self.memory = memory
            self.wake = wake
        }

        deinit { memory.leave(number) }

        /// Asks for the bytes of the next part.
        ///
        /// - Returns: Nil where there are none. Then the seat is woken, from anywhere, to ask once more.
        package func take(_ count: Int64) -> Grant? {
            memory.take(Request(seat: number, app: app, count: count, wake: wake))
        }
    }

    fileprivate struct Request {
        let seat: UInt64
        let app: Int64
        let count: Int64
        let wake: @Sendable () -> Void
    }

    private struct State {
        var taken: Int64 = 0
        var takenByApp: [Int64: Int64] = [:]
        /// The first is served first.
        var queue: [Request] = []
        /// What waits for the seats that were woken.
        var served: [UInt64: Grant] = [:]
        var lastSeat: UInt64 = 0

        mutating func take(_ count: Int64, of app: Int64, limit: Int64) -> Bool {
            guard taken == 0 || taken + count <= limit, mayTake(count, of: app, limit: limit) else { return false }
            taken += count
            takenByApp[app, default: 0] += count
            return true
        }

        /// Whether it is an app's turn, apart from what others have.
        func mayTake(_ count: Int64, of app: Int64, limit: Int64) -> Bool {
            takenByApp[app].map { $0 + count <= limit / 2 } ?? true
        }

        mutating func release(_ count: Int64, of app: Int64) {
            taken -= count
            takenByApp[app, default: 0] -= count
            if takenByApp[app] == 0 { takenByApp[app] = nil }
        }
    }

    private let limit: Int64
    private let state = Locked(State())

    /// - Parameter limit: In bytes.
    package init(limit: Int64 = 512 << 20) { self.limit = limit }

    /// Bytes that are taken.
    package var taken: Int64 { state.withLock(\.taken) }

    /// - Parameter wake: Called when a part that was asked for in vain can be had. Must not wait.
    package func seat(of app: Int64, wake: @escaping @Sendable () -> Void) -> Seat {
        let number = state.withLock { state in
            state.lastSeat += 1
            return state.lastSeat
        }
        return Seat(number, of: app, self, wake: wake)
    }

    /// Waits for the bytes of a part.
    ///
    /// - Returns: Nil where the task was cancelled meanwhile.
    package func grant(_ count: Int64, of app: Int64) async -> Grant? {
        let bell = Doorbell()
        let seat = seat(of: app) { bell.ring() }
        while !Task.isCancelled {
            if let grant = seat.take(count) { return grant }
            await bell.wait(until: nil)
        }
        return nil
    }

    private func take(_ request: Request) -> Grant? {
        state.withLock { state in
            if let grant = state.served.removeValue(forKey: request.seat) { return grant }
            guard !state.queue.contains(where: { $0.seat == request.seat }) else { return nil }
            // Only those of apps that have their half are passed over.
            let isNext = !state.queue.contains { state.mayTake($0.count, of: $0.app, limit: limit) }
            guard isNext, state.take(request.count, of: request.app, limit: limit) else {
                state.queue.append(request)
                return nil
            }
            return Grant(request.count, of: request.app, self)
        }
    }

    private func release(_ count: Int64, of app: Int64) {
        serve { $0.release(count, of: app) }
    }

    private func leave(_ seat: UInt64) {
        // Its end takes the lock as well, and serves the next.
        let unused = state.withLock { state in
            state.queue.removeAll { $0.seat == seat }
            return state.served.removeValue(forKey: seat)
        }
        if unused == nil { serve { _ in } }
    }

    /// Serves the waiting requests that fit after a change.
    private func serve(_ change: (inout State) -> Void) {
        let served = state.withLock { state in
            change(&state)
            var served: [Request] = []
            while let index = state.queue.firstIndex(where: { state.mayTake($0.count, of: $0.app, limit: limit) }),
                case let next = state.queue[index], state.take(next.count, of: next.app, limit: limit)
            {
                state.queue.remove(at: index)
                state.served[next.seat] = Grant(next.count, of: next.app, self)
                served.append(next)
            }
            return served
        }
        for request in served { request.wake() }
    }
}
