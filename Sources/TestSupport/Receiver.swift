import Base
package import Core

/// A receiver of webhooks on raw sockets, on a free port of 127.0.0.1, with the test's responses.
package final class Receiver: Sendable {
    /// One delivery as it arrived.
    package struct Delivery: Sendable {
        /// The number of the delivery, from 1.
        package let number: Int
        package let method: String
        package let target: String
        package let fields: HTTPFields
        package let body: [UInt8]
        /// The arrival time of the body.
        package let time: ContinuousClock.Instant

        /// The body as JSON; null if it is not JSON.
        package var json: JSON { (try? JSON(parsing: body)) ?? .null }
        /// `webhook-id`.
        package var id: String? { fields["webhook-id"] }
        package var type: String? { json["type"].string }

        /// Whether one of the signatures is right for the secret.
        package func isSigned(with secret: String) -> Bool {
            WebhookSignature.verifies(secret: secret, fields: fields, body: body)
        }
    }

    /// The response to a delivery.
    package struct Answer: Sendable {
        package enum Manner: Sendable {
            case answer
            /// Closes the connection without a response.
            case close
            /// Sends no response, with the connection open.
            case hang
        }

        package var status = 204
        package var fields = HTTPFields()
        package var body: [UInt8] = []
        package var delay: Duration = .zero
        package var gate: Gate?
        package var manner = Manner.answer

        /// Launched; the completion follows with a request.
        package static let launched = Answer()
        package static let close = Answer(manner: .close)
        package static let hang = Answer(manner: .hang)

        package static func status(_ status: Int, _ fields: [(String, String)] = []) -> Answer {
            Answer(status: status, fields: HTTPFields(pairs: fields))
        }

        /// 200 with a JSON body, such as `{"completed": true}`.
        package static func json(_ json: JSON) -> Answer {
            Answer(status: 200, fields: HTTPFields(pairs: [("Content-Type", "application/json")]), body: json.bytes)
        }

        /// 204 once the gate is open.
        package static func hold(_ gate: Gate) -> Answer { Answer(gate: gate) }
    }

    package let port: UInt16
    private let server: SocketServer
    private let state: State

    private final class State: Sendable {
        let deliveries = Locked<[Delivery]>([])
        let respond: Locked<@Sendable (Delivery) -> Answer>
        init(_ respond: @escaping @Sendable (Delivery) -> Answer) { self.respond = Locked(respond) }
    }

    /// Starts to listen; `respond` returns the response to each delivery.
    package init(port: UInt16 = 0, respond: @escaping @Sendable (Delivery) -> Answer = { _ in .launched }) throws {
        let state = State(respond)
        self.state = state
        server = try SocketServer(port: port) { Self.serve($0, state) }
        self.port = server.port
    }

    /// Starts to listen, and sends the responses in turn, the last one repeatedly.
    package convenience init(answers: [Answer]) throws {
        try self.init { delivery in
            answers.isEmpty ? .launched : answers[min(delivery.number, answers.count) - 1]
        }
    }

    deinit { stop() }

    /// Refuses new connections and ends the open ones.
    package func stop() { server.stop() }

    package var url: String { "http://127.0.0.1:\(port)/hook" }

    /// Replaces the closure that returns the responses.
    package func respond(_ respond: @escaping @Sendable (Delivery) -> Answer) {
        state.respond.withLock { $0 = respond }
    }

    /// All deliveries so far.
    package var deliveries: [Delivery] { state.deliveries.withLock { $0 } }

    /// Waits for so many deliveries (of the given type), and returns them.
    @discardableResult
    package func waitForDelivery(
        count: Int = 1, type: String? = nil, within limit: Duration = .seconds(60)
    ) async throws -> [Delivery] {
        try await eventually("\(count) deliveries", within: limit) {
            let found = deliveries.filter { type == nil || $0.type == type }
            return found.count >= count ? found : nil
        }
    }

    private static func serve(_ socket: Socket, _ state: State) {
        let reader = HTTPReader(socket)
        // A peer that disconnects ends its connection only.
        while (try? serveOne(socket, reader, state)) == true {}
        socket.shutdown()
    }

    private static func serveOne(_ socket: Socket, _ reader: HTTPReader, _ state: State) throws -> Bool {
        guard let (line, fields) = try reader.head() else { return false }
        let parts = line.split(separator: " ")
        guard parts.count == 3 else { return false }
        if fields["Expect"]?.asciiLowercased == "100-continue" { try socket.send("HTTP/1.1 100 Continue\r\n\r\n") }
        var body: [UInt8] = []
        try reader.body(fields.isChunked ? .chunked : .length(fields["Content-Length"].flatMap { Int($0) } ?? 0)) {
            body += $0
        }
        let received = body
        let delivery = state.deliveries.withLock { deliveries in
            let delivery = Delivery(
                number: deliveries.count + 1, method: String(parts[0]), target: String(parts[1]), fields: fields,
                body: received, time: .now)
            deliveries.append(delivery)
            return delivery
        }
        let respond = state.respond.withLock { $0 }
        return try send(respond(delivery), socket)
    }

    private static func send(_ answer: Answer, _ socket: Socket) throws -> Bool {
        if let gate = answer.gate, !gate.wait(socket) { return false }
        if answer.delay > .zero, socket.waitForHangUp(atMost: answer.delay) { return false }
        switch answer.manner {
        case .close: return false
        case .hang:
            while !socket.waitForHangUp(atMost: .seconds(1)) {}
            return false
        case .answer:
            let length = answer.status == 204 ? "" : "Content-Length: \(answer.body.count)\r\n"
            let head = "HTTP/1.1 \(answer.status) Status\r\n\(answer.fields.lines)\(length)\r\n"
            try socket.send(Array(head.utf8) + answer.body)
            return true
        }
    }
}
