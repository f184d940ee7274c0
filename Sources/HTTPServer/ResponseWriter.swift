import Base
import CMicroHTTPD
import Glibc

/// The body of a streamed answer, written as it is made. One writer.
///
/// What libmicrohttpd has not taken yet is bounded: beyond, `write` waits.
package final class ResponseWriter: Sendable {
    /// The connection is gone; nothing written from now on reaches anybody.
    package struct ClientIsGone: Error, Sendable, Equatable {}

    private struct State: Sendable {
        var bytes: [UInt8] = []
        /// How many of `bytes` libmicrohttpd has.
        var sent = 0
        var total: Int64 = 0
        var isEnded = false
        var isGone = false
        var isHeld = false
        /// Whether libmicrohttpd's buffer may have memory since it was given back last.
        var hasMemory = true
        var writer: CheckedContinuation<Void, any Error>?

        /// Resumes the connection when it waits for bytes. Under the lock, so that it resumes once.
        mutating func wake(_ connection: ConnectionHandle) {
            guard isHeld else { return }
            isHeld = false
            connection.resume()
        }
    }

    private let state = Locked(State())
    private let connection: ConnectionHandle
    /// Bytes kept for the connection at which `write` waits.
    private let capacity: Int

    /// A body whose end is not known is one that waits for something to tell: of many such, each keeps only what it has
    /// just written. One of a known length is sent as fast as the client takes it.
    init(_ connection: ConnectionHandle, for body: HTTPResponseBody) {
        self.connection = connection
        capacity = if case .sized = body { 64 * 1024 } else { 1 }
    }

    /// Whether the connection is suspended until there are bytes.
    var isHeld: Bool { state.withLock { $0.isHeld } }

    /// Bytes handed to the connection so far.
    var total: Int64 { state.withLock { $0.total } }

    /// Sends `bytes` when the client has room for them. In a body of unknown length this returns when the connection has
    /// all of them.
    ///
    /// - Throws: ``ClientIsGone``; `CancellationError` when the task is cancelled while it waits.
    package func write(_ bytes: [UInt8]) async throws {
        guard !bytes.isEmpty else { return }
        let isFull = try state.withLock { state throws in
            guard !state.isGone, !state.isEnded else { throw ClientIsGone() }
            state.bytes.append(contentsOf: bytes)
            state.wake(connection)
            return state.bytes.count - state.sent >= capacity
        }
        guard isFull else { return }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let outcome = state.withLock { state -> Result<Void, any Error>? in
                    if state.isGone { return .failure(ClientIsGone()) }
                    if state.bytes.count - state.sent < capacity { return .success(()) }
                    if Task.isCancelled { return .failure(CancellationError()) }
                    state.writer = continuation
                    return nil
                }
                if let outcome { continuation.resume(with: outcome) }
            }
        } onCancel: {
            takeWriter()?.resume(throwing: CancellationError())
        }
    }

    /// Ends the body. What was written is still sent.
    package func end() {
        state.withLock {
            $0.isEnded = true
            $0.wake(connection)
        }
    }

    /// Ends the body because the client does not read it any more, and closes the connection. Returns whether it was not ended.
    func abort() -> Bool {
        let wasOpen = state.withLock { state in
            state.isGone = true
            state.wake(connection)
            return !state.isEnded
        }
        takeWriter()?.resume(throwing: ClientIsGone())
        return wasOpen
    }

    /// Gives the memory of a buffer that is to be filled another day back to the system: an idle stream keeps none.
    ///
    /// The library fills all of it with zeros before it is handed out for the first time, and wants nothing of it back.
    private static func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let start = buffer.baseAddress else { return }
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        let first = (UInt(bitPattern: start) + page - 1) / page * page
        let end = (UInt(bitPattern: start) + UInt(buffer.count)) / page * page
        guard first < end, let pages = UnsafeMutableRawPointer(bitPattern: first) else { return }
        madvise(pages, Int(end - first), MADV_DONTNEED)
    }

    private func takeWriter() -> CheckedContinuation<Void, any Error>? { state.withLock { $0.writer.take() } }

    /// Fills libmicrohttpd's buffer, or suspends the connection until there is something to fill it with.
    ///
    /// Corresponds to `MHD_ContentReaderCallback`.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (count, writer) = state.withLock { state -> (Int, CheckedContinuation<Void, any Error>?) in
            if state.isGone { return (mhd_end_with_error, nil) }
            let count = min(buffer.count, state.bytes.count - state.sent)
            guard count > 0 else {
                if state.isEnded { return (mhd_end_of_stream, nil) }
                state.isHeld = true
                if state.hasMemory { Self.giveBack(buffer) }
                state.hasMemory = false
                connection.suspend()
                return (0, nil)
            }
            state.hasMemory = true
            state.bytes.withUnsafeBytes {
                buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[state.sent..<(state.sent + count)]))
            }
            state.sent += count
            state.total += Int64(count)
            if state.sent == state.bytes.count {
                state.bytes = []
                state.sent = 0
            }
            return (count, state.bytes.count - state.sent < capacity ? state.writer.take() : nil)
        }
        writer?.resume()
        return count
    }
}
