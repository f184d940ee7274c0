import Glibc

/// Writes lines to a descriptor from a thread of its own, so that logging never waits for the reader of the log.
///
/// The queue is bounded. Further lines are dropped and counted; the count becomes a line when there is space again. The
/// descriptor's flags are not changed: a terminal is shared with the shell, so `O_NONBLOCK` would affect the shell.
package final class LogWriter: Sendable {
    private struct State {
        var lines: [[UInt8]] = []
        var bytes = 0
        var dropped = 0
        var isWriting = false

        var isEmpty: Bool { lines.isEmpty && dropped == 0 }
    }

    private let state = Monitor(State())
    private let descriptor: Int32
    private let capacity: Int
    private let told: @Sendable (_ dropped: Int) -> [UInt8]

    /// The number of bytes that a pipe accepts atomically, whichever processes write to it (`PIPE_BUF`).
    private static let pieceLength = 4096
    /// Microseconds in which lines are collected after others were written. A lone line is written at once.
    private static let pause: UInt32 = 5000

    /// Starts the thread, which lives as long as the process.
    ///
    /// - Parameters:
    ///   - capacity: The maximum number of queued bytes.
    ///   - told: Makes the line that reports the number of dropped lines.
    package init(
        descriptor: Int32 = STDERR_FILENO, capacity: Int = 1 << 20,
        told: @escaping @Sendable (_ dropped: Int) -> [UInt8]
    ) {
        self.descriptor = descriptor
        self.capacity = capacity
        self.told = told
        do {
            try SystemThread.start("log") { self.run() }
        } catch {
            preconditionFailure("\(error)")
        }
    }

    /// Accepts a line, or drops and counts it. Never blocks.
    package func write(_ line: [UInt8]) {
        state.withLock { state in
            guard state.bytes + line.count <= capacity else { return state.dropped += 1 }
            state.lines.append(line)
            state.bytes += line.count
        }
        state.wakeAll()
    }

    /// Waits until all lines are written, for at most `limit`: for the end of the process.
    package func flush(within limit: Duration) {
        _ = state.wait(atMost: limit) { $0.isEmpty && !$0.isWriting ? () : nil }
    }

    // MARK: The thread

    private func run() -> Never {
        while true {
            let (lines, dropped) = take()
            var piece: [UInt8] = []
            for line in lines {
                if piece.count + line.count > Self.pieceLength {
                    send(piece)
                    piece.removeAll(keepingCapacity: true)
                }
                piece += line
            }
            send(piece)
            // The dropped lines came after these.
            if dropped > 0 { send(told(dropped)) }
            // Waking this thread costs the writer of the line more than the line itself.
            usleep(Self.pause)
        }
    }

    private func take() -> (lines: [[UInt8]], dropped: Int) {
        state.withLock { $0.isWriting = false }
        state.wakeAll()
        return state.wait { state in
            guard !state.isEmpty else { return nil }
            defer { state = State(isWriting: true) }
            return (state.lines, state.dropped)
        }
    }

    /// Writes whole lines, with one `write(2)` if the reader accepts them. Without a reader they are lost.
    private func send(_ lines: [UInt8]) {
        var rest = lines[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                // A process that shares the descriptor made it non-blocking.
                var state = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                poll(&state, 1, -1)
            } else if errno != EINTR {
                return
            }
        }
    }
}
