import Base

/// A memory budget for parts that are longer than usual, as in contents over 78 GiB: one budget for all parts being
/// collected and sent, whatever lengths origins announce.
///
/// An app has at most half of it, and requests are served in order. A part larger than the budget is collected alone.
package final class PartMemory: Sendable {
    /// Memory for a part, until its last reference is released.
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

    /// The queue position of an exchange that collects parts, one after the other, until the seat is released.
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

        /// Requests memory for the next part.
        ///
        /// - Returns: `nil` if there is none. Then the seat is woken, on any thread, to request it again.
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
        /// In order of arrival.
        var queue: [Request] = []
        /// Grants for seats that were woken.
        var served: [UInt64: Grant] = [:]
        var lastSeat: UInt64 = 0

        mutating func take(_ count: Int64, of app: Int64, limit: Int64) -> Bool {
            guard taken == 0 || taken + count <= limit, mayTake(count, of: app, limit: limit) else { return false }
            taken += count
            takenByApp[app, default: 0] += count
            return true
        }

        /// Whether the app is within its half, whatever others have.
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

    /// The bytes granted.
    package var taken: Int64 { state.withLock(\.taken) }

    /// - Parameter wake: Called when memory that was not granted is available. Must not wait.
    package func seat(of app: Int64, wake: @escaping @Sendable () -> Void) -> Seat {
        let number = state.withLock { state in
            state.lastSeat += 1
            return state.lastSeat
        }
        return Seat(number, of: app, self, wake: wake)
    }

    /// Waits for the memory of a part.
    ///
    /// - Returns: `nil` if the Swift task was cancelled meanwhile.
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
            // Only requests of apps that have their half are skipped.
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
        // The end of the grant takes the lock as well, and serves the next request.
        let unused = state.withLock { state in
            state.queue.removeAll { $0.seat == seat }
            return state.served.removeValue(forKey: seat)
        }
        if unused == nil { serve { _ in } }
    }

    /// Applies a change, then serves the waiting requests that fit.
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
