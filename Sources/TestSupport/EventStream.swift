import Base
import Core

/// A stream of server-sent events, read by a thread of its own until it is closed.
package final class EventStream: Sendable {
    /// One event. Heartbeats (comments) are no events.
    package struct Event: Sendable {
        package var id: String?
        package var type: String?
        package var data = ""

        package var json: JSON { (try? JSON(parsing: data)) ?? .null }
    }

    private struct State {
        var events: [Event] = []
        var comments = 0
        var ended = false
    }

    private let socket: Socket
    private let state: Shared

    private final class Shared: Sendable {
        let value = Locked(State())
    }

    /// The response was no event stream.
    package struct Refused: Error { package let status: Int }

    private init(socket: Socket, state: Shared) {
        self.socket = socket
        self.state = state
    }

    deinit { close() }

    static func open(_ socket: Socket) async throws -> EventStream {
        let shared = Shared()
        return try await withCheckedThrowingContinuation { continuation in
            startThread {
                let reader = HTTPReader(socket)
                do {
                    guard let (line, fields) = try reader.head() else { throw Refused(status: 0) }
                    let status = try APIClient.Exchange.status(line)
                    guard status == 200 else { throw Refused(status: status) }
                    socket.setTimeout(nil)
                    continuation.resume(returning: EventStream(socket: socket, state: shared))
                    Self.read(reader, chunked: fields.isChunked, into: shared)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
    }

    /// All events so far.
    package var events: [Event] { state.value.withLock { $0.events } }

    /// The number of comment lines (heartbeats).
    package var comments: Int { state.value.withLock { $0.comments } }

    /// Whether the service ended the stream.
    package var hasEnded: Bool { state.value.withLock { $0.ended } }

    /// Waits until an event satisfies `matches`, and returns all events so far.
    @discardableResult
    package func wait(
        _ what: String = "an event of the stream", within limit: Duration = .seconds(30),
        until matches: ([Event]) -> Bool
    ) async throws -> [Event] {
        try await eventually(what, within: limit) {
            let events = events
            return matches(events) ? events : nil
        }
    }

    /// Closes the connection at once, like a client that dies.
    package func close() { socket.shutdown() }

    private static func read(_ reader: HTTPReader, chunked: Bool, into shared: Shared) {
        var lines = LineSplitter()
        var event = Event()
        // The stream ends when either side closes it, for any reason.
        _ = try? reader.body(chunked ? .chunked : .untilClose) { piece in
            for line in lines.add(piece) {
                if line.isEmpty {
                    if !event.data.isEmpty {
                        let finished = event
                        shared.value.withLock { $0.events.append(finished) }
                    }
                    event = Event()
                } else if line.hasPrefix(":") {
                    shared.value.withLock { $0.comments += 1 }
                } else {
                    add(line, to: &event)
                }
            }
        }
        shared.value.withLock { $0.ended = true }
    }

    private static func add(_ line: String, to event: inout Event) {
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        var value = line[colon...].dropFirst()
        if value.first == " " { value = value.dropFirst() }
        switch line[..<colon] {
        case "id": event.id = String(value)
        case "event": event.type = String(value)
        case "data": event.data += event.data.isEmpty ? String(value) : "\n" + value
        default: break
        }
    }

    private struct LineSplitter {
        private var rest: [UInt8] = []

        mutating func add(_ bytes: [UInt8]) -> [String] {
            rest += bytes
            var lines: [String] = []
            while let end = rest.firstIndex(of: 0x0A) {
                var line = rest[..<end]
                if line.last == 0x0D { line = line.dropLast() }
                lines.append(String(decoding: line, as: UTF8.self))
                rest.removeFirst(end + 1)
            }
            return lines
        }
    }
}
