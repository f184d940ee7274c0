import Base
import CMicroHTTPD
import Glibc

/// The body of a streamed response, written by one writer.
///
/// Bytes not yet passed to libmicrohttpd are bounded: at the limit, `write` waits.
package final class ResponseWriter: Sendable {
    /// The connection is closed. No further byte reaches the client.
    package struct ClientIsGone: Error, Sendable, Equatable {}

    private struct State: Sendable {
        var bytes: [UInt8] = []
        /// The number of bytes passed to libmicrohttpd.
        var sent = 0
        var total: Int64 = 0
        var isEnded = false
        var trailers: [(name: String, value: String)] = []
        var isGone = false
        var isHeld = false
        /// Whether libmicrohttpd's buffer may have memory since it was last released.
        var hasMemory = true
        var writer: CheckedContinuation<Void, any Error>?

        /// Resumes the connection if it waits for bytes. Called under the lock, so that it resumes once.
        mutating func wake(_ connection: ConnectionHandle) {
            guard isHeld else { return }
            isHeld = false
            connection.resume()
        }
    }

    private let state = Locked(State())
    private let connection: ConnectionHandle
    /// The number of bytes at which `write` waits.
    private let capacity: Int

    /// A body of unknown length mostly waits for events. There may be many, so each keeps only what it has just
    /// written. A body of known length is sent as fast as the client reads.
    init(_ connection: ConnectionHandle, for body: HTTPResponseBody) {
        self.connection = connection
        capacity = if case .sized = body { 64 * 1024 } else { 1 }
    }

    /// Whether the connection is suspended until there are bytes.
    var isHeld: Bool { state.withLock { $0.isHeld } }

    /// The number of bytes passed to the connection so far.
    var total: Int64 { state.withLock { $0.total } }

    /// Sends `bytes` when there is space for them. For a body of unknown length, returns when the connection has all of
    /// them.
    ///
    /// - Throws: ``ClientIsGone``; `CancellationError` if the Swift task is cancelled while it waits.
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

    /// Adds a field that follows the last chunk. No effect on a body of known length.
    package func addTrailer(_ name: String, _ value: String) {
        state.withLock { $0.trailers.append((name, value)) }
    }

    /// The fields that follow the last chunk.
    var trailers: [(name: String, value: String)] { state.withLock { $0.trailers } }

    /// Ends the body. Written bytes are still sent.
    package func end() {
        state.withLock {
            $0.isEnded = true
            $0.wake(connection)
        }
    }

    /// Ends the body and closes the connection, because the client does not read it. Returns whether the body was open.
    func abort() -> Bool {
        let wasOpen = state.withLock { state in
            state.isGone = true
            state.wake(connection)
            return !state.isEnded
        }
        takeWriter()?.resume(throwing: ClientIsGone())
        return wasOpen
    }

    /// Returns the memory of an unfilled buffer to the system, so that an idle stream uses none.
    ///
    /// The library zeroes the whole buffer before its first use, and relies on none of its contents afterwards.
    private static func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
        guard let start = buffer.baseAddress else { return }
        let page = UInt(sysconf(Int32(_SC_PAGESIZE)))
        let first = (UInt(bitPattern: start) + page - 1) / page * page
        let end = (UInt(bitPattern: start) + UInt(buffer.count)) / page * page
        guard first < end, let pages = UnsafeMutableRawPointer(bitPattern: first) else { return }
        madvise(pages, Int(end - first), MADV_DONTNEED)
    }

    private func takeWriter() -> CheckedContinuation<Void, any Error>? { state.withLock { $0.writer.take() } }

    /// Fills libmicrohttpd's buffer, or suspends the connection until there are bytes.
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
