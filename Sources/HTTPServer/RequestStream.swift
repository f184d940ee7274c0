import Base

/// A request's body, streamed to one reader.
///
/// Unread bytes are bounded: at the limit the connection is not read, so that the client waits.
package final class RequestStream: Sendable {
    package enum Failure: Error, Sendable, Equatable {
        /// The connection ended before the body did, or the body arrived too slowly.
        case cutOff
        /// Two readers at the same time.
        case busy
    }

    private struct State: Sendable {
        var bytes: [UInt8] = []
        var isFinished = false
        var failure: Failure?
        var reader: CheckedContinuation<[UInt8]?, any Error>?
        var received: Int64 = 0
    }

    /// The bytes kept for the reader before the connection pauses.
    static let capacity = 256 * 1024

    private let state: Locked<State>
    /// Requests more bytes from the connection: at the first read, and when the kept bytes were read.
    private let demand: @Sendable () -> Void
    private let limit: @Sendable (Duration) -> Void

    init(demand: @escaping @Sendable () -> Void, limit: @escaping @Sendable (Duration) -> Void) {
        state = Locked(State())
        self.demand = demand
        self.limit = limit
    }

    /// A complete body.
    package init(_ bytes: [UInt8]) {
        state = Locked(State(bytes: bytes, isFinished: true, received: Int64(bytes.count)))
        demand = {}
        limit = { _ in }
    }

    /// Limits the time for the whole body, counted from now, instead of its rate. After the limit the client gets 408,
    /// and the reader ``Failure/cutOff``.
    package func end(within time: Duration) { limit(time) }

    /// The next bytes, at least one; `nil` after the last.
    ///
    /// - Throws: ``Failure/cutOff`` if the body ended before its announced end; `CancellationError` if the Swift task
    ///   is cancelled.
    package func next() async throws -> [UInt8]? {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { reader in
                switch take(reader) {
                case .bytes(let bytes):
                    demand()
                    reader.resume(returning: bytes)
                case .end: reader.resume(returning: nil)
                case .failed(let failure): reader.resume(throwing: failure)
                case .waits: demand()
                }
            }
        } onCancel: {
            state.withLock { $0.reader.take() }?.resume(throwing: CancellationError())
        }
    }

    /// As ``next()``, but empty if no byte arrives within `time`.
    package func next(within time: Duration) async throws -> [UInt8]? {
        try await withThrowingTaskGroup(of: [UInt8]?.self) { group in
            group.addTask { try await self.next() }
            group.addTask {
                try await Task.sleep(for: time)
                return []
            }
            defer { group.cancelAll() }
            let first = try await group.next() ?? nil
            guard first == [] else { return first }
            group.cancelAll()
            // Bytes may have arrived before the cancellation.
            do { return try await group.next() ?? nil } catch is CancellationError { return [] }
        }
    }

    private enum Taken: Sendable {
        case bytes([UInt8]), end, failed(any Error), waits
    }

    private func take(_ reader: CheckedContinuation<[UInt8]?, any Error>) -> Taken {
        state.withLock { state in
            guard state.reader == nil else { return .failed(Failure.busy) }
            if !state.bytes.isEmpty { return .bytes(state.bytes.takeAll()) }
            if let failure = state.failure { return .failed(failure) }
            if state.isFinished { return .end }
            if Task.isCancelled { return .failed(CancellationError()) }
            state.reader = reader
            return .waits
        }
    }

    /// Keeps `bytes` for the reader. Returns whether the connection should pause.
    func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        let (reader, taken, isFull) = state.withLock {
            state -> (CheckedContinuation<[UInt8]?, any Error>?, [UInt8], Bool) in
            state.received += Int64(bytes.count)
            if let reader = state.reader.take() { return (reader, Array(bytes), false) }
            state.bytes.append(contentsOf: bytes)
            return (nil, [], state.bytes.count >= Self.capacity)
        }
        reader?.resume(returning: taken)
        return isFull
    }

    var received: Int64 { state.withLock { $0.received } }

    func finish() { end(nil) }
    func fail(_ failure: Failure) { end(failure) }

    private func end(_ failure: Failure?) {
        let reader = state.withLock { state -> CheckedContinuation<[UInt8]?, any Error>? in
            guard !state.isFinished, state.failure == nil else { return nil }
            if failure == nil { state.isFinished = true } else { state.failure = failure }
            return state.reader.take()
        }
        if let failure { reader?.resume(throwing: failure) } else { reader?.resume(returning: nil) }
    }
}
