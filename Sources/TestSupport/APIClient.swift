import Base
package import Core

/// A small HTTP/1.1 client over raw sockets, with one connection for each request, each on a thread of its own.
package struct APIClient: Sendable {
    package struct Answer: Sendable {
        package let status: Int
        package let fields: HTTPFields
        package let body: [UInt8]

        package init(status: Int, fields: HTTPFields, body: [UInt8]) {
            self.status = status
            self.fields = fields
            self.body = body
        }

        /// The body as JSON; null if it is not JSON.
        package var json: JSON { (try? JSON(parsing: body)) ?? .null }
        package var text: String { String(decoding: body, as: UTF8.self) }
        /// The `code` of a problem.
        package var code: String? { json["code"].string }
        /// The pointers of a problem, in order.
        package var pointers: [String] { (json["errors"].array ?? []).compactMap { $0["pointer"].string } }
        /// The query parameters that a problem names, in order.
        package var parameters: [String] { (json["errors"].array ?? []).compactMap { $0["parameter"].string } }
        package var etag: String? { fields["ETag"] }
    }

    package let port: UInt16
    /// The key for `Authorization: Bearer`; `nil` for none.
    package var key: String?
    /// Called with every response to ``send(_:_:headers:body:within:)`` and its short forms.
    package var observe: (@Sendable (_ method: String, _ target: String, _ answer: Answer) -> Void)?

    package init(port: UInt16, key: String? = "dev") {
        self.port = port
        self.key = key
    }

    /// The same client with another key.
    package func with(key: String?) -> APIClient {
        var client = self
        client.key = key
        return client
    }

    /// Sends a request and waits for its response. Cancelling the task closes the connection.
    @discardableResult
    package func send(
        _ method: String, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        within limit: Duration = .seconds(90)
    ) async throws -> Answer {
        let exchange = try await begin(method, path, headers: headers, body: body, within: limit)
        let answer = try await withTaskCancellationHandler {
            try await exchange.answer()
        } onCancel: {
            exchange.abort()
        }
        observe?(method, path, answer)
        return answer
    }

    @discardableResult
    package func get(_ path: String, headers: [(String, String)] = []) async throws -> Answer {
        try await send("GET", path, headers: headers)
    }

    /// Sends a `POST` with a JSON body; `nil` for an empty one.
    @discardableResult
    package func post(_ path: String, _ json: JSON? = nil, headers: [(String, String)] = []) async throws -> Answer {
        try await send("POST", path, json: json, headers: headers)
    }

    @discardableResult
    package func put(_ path: String, _ json: JSON? = nil, headers: [(String, String)] = []) async throws -> Answer {
        try await send("PUT", path, json: json, headers: headers)
    }

    @discardableResult
    package func patch(_ path: String, _ json: JSON, headers: [(String, String)] = []) async throws -> Answer {
        try await send("PATCH", path, json: json, headers: headers)
    }

    @discardableResult
    package func delete(_ path: String, headers: [(String, String)] = []) async throws -> Answer {
        try await send("DELETE", path, headers: headers)
    }

    /// Sends a request without reading its response, for a client that disconnects or waits.
    package func begin(
        _ method: String, _ path: String, headers: [(String, String)] = [], body: [UInt8]? = nil,
        within limit: Duration = .seconds(90)
    ) async throws -> Exchange {
        let head = head(method, path, headers, bodyLength: body?.count)
        return try await onThread { [port] in
            let socket = try Socket.connect(port: port)
            socket.setTimeout(limit)
            // A service may respond and close before it has read the request. Its response counts, not the failed send.
            try? socket.send(Array(head.utf8) + (body ?? []))
            return Exchange(socket: socket, method: method)
        }
    }

    /// Opens a stream of server-sent events. Throws if the response is no stream.
    package func openStream(_ path: String, headers: [(String, String)] = []) async throws -> EventStream {
        let exchange = try await begin("GET", path, headers: headers + [("Accept", "text/event-stream")])
        return try await EventStream.open(exchange.socket)
    }

    /// Sends bytes verbatim and returns all bytes until the peer closes.
    package func raw(_ bytes: [UInt8], within limit: Duration = .seconds(30)) async throws -> [UInt8] {
        try await onThread { [port] in
            let socket = try Socket.connect(port: port)
            socket.setTimeout(limit)
            try? socket.send(bytes)
            var received: [UInt8] = []
            while true {
                let piece = (try? socket.receive()) ?? []
                guard !piece.isEmpty else { return received }
                received += piece
            }
        }
    }

    private func send(
        _ method: String, _ path: String, json: JSON?, headers: [(String, String)]
    ) async throws -> Answer {
        let type = json == nil ? [] : [("Content-Type", "application/json")]
        return try await send(method, path, headers: type + headers, body: json?.bytes ?? [])
    }

    private func head(_ method: String, _ path: String, _ headers: [(String, String)], bodyLength: Int?) -> String {
        let given = HTTPFields(pairs: headers)
        var fields = given
        if !given.contains("Host") { fields.append("Host", "127.0.0.1:\(port)") }
        if !given.contains("Connection") { fields.append("Connection", "close") }
        if let key, !given.contains("Authorization") { fields.append("Authorization", "Bearer \(key)") }
        if let bodyLength, !given.contains("Content-Length"), !given.isChunked {
            fields.append("Content-Length", String(bodyLength))
        }
        return "\(method) \(path) HTTP/1.1\r\n\(fields.lines)\r\n"
    }

    /// A request that was sent.
    package final class Exchange: Sendable {
        let socket: Socket
        private let method: String

        init(socket: Socket, method: String) {
            self.socket = socket
            self.method = method
        }

        /// Sends more bytes of the request.
        package func send(_ bytes: [UInt8]) async throws { try await onThread { try self.socket.send(bytes) } }

        /// Waits for the complete response.
        package func answer() async throws -> Answer {
            try await onThread { try Self.read(HTTPReader(self.socket), method: self.method) }
        }

        /// Reads the response as it arrives.
        package func follow() -> FollowedAnswer {
            FollowedAnswer { [self] note in
                let reader = HTTPReader(socket)
                guard let (line, fields) = try reader.head() else { return }
                let status = try Self.status(line)
                note { ($0.status, $0.fields) = (status, fields) }
                let trailers = try reader.body(Self.framing(method, status, fields)) { bytes in
                    note { $0.body += bytes }
                }
                note { ($0.trailers, $0.isWhole) = (trailers, true) }
            }
        }

        /// Closes the connection at once.
        package func abort() { socket.shutdown() }

        private static func read(_ reader: HTTPReader, method: String) throws -> Answer {
            while true {
                guard let (line, fields) = try reader.head() else {
                    throw HTTPReader.Malformed(description: "closed without an answer")
                }
                let status = try status(line)
                guard status >= 200 else { continue }
                var body: [UInt8] = []
                try reader.body(framing(method, status, fields)) { body += $0 }
                return Answer(status: status, fields: fields, body: body)
            }
        }

        static func status(_ line: String) throws -> Int {
            let parts = line.split(separator: " ")
            guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
                throw HTTPReader.Malformed(description: "status line \(line)")
            }
            return status
        }

        private static func framing(_ method: String, _ status: Int, _ fields: HTTPFields) -> HTTPReader.Framing {
            if method == "HEAD" || status == 204 || status == 304 { return .none }
            if fields.isChunked { return .chunked }
            return fields["Content-Length"].flatMap { Int($0) }.map { .length($0) } ?? .untilClose
        }
    }
}
