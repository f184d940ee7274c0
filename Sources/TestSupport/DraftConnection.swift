import Base
import Core

/// One connection of a draft server, served by the thread that owns it.
final class DraftConnection {
    private struct Cut: Error {}

    private let socket: Socket
    private let reader: HTTPReader
    private let state: Locked<DraftState>
    private let deletions: Gate
    private var isReset = false
    // The turn of the current request.
    private var turn = DraftServer.Turn()
    private var answerLeft = Int.max

    init(_ socket: Socket, _ state: Locked<DraftState>, _ deletions: Gate) {
        self.socket = socket
        self.state = state
        self.deletions = deletions
        reader = HTTPReader(socket)
    }

    /// Serves requests until one side ends the connection.
    func serve() {
        while (try? serveOne()) == true {}
        if !isReset { socket.shutdown() }
    }

    private func serveOne() throws -> Bool {
        guard let (line, fields) = try reader.head() else { return false }
        let parts = line.split(separator: " ").map(String.init)
        guard parts.count == 3 else { return false }
        let (method, path) = (parts[0], parts[1])
        let index = state.withLock { state in
            state.requests.append(DraftServer.Request(method: method, path: path, fields: fields))
            return state.requests.count - 1
        }
        if let (status, location) = state.withLock({ $0.redirects[path] }) {
            return try answerEarly(status, [("Location", location)])
        }
        turn = DraftServer.Turn()
        answerLeft = .max
        let isResource = path.hasPrefix("/uploads/")
        do {
            switch method {
            case "HEAD" where isResource: return try tellOffset(path, fields)
            case "DELETE" where isResource: return try delete(path)
            case "PATCH" where isResource: return try append(path, fields, index)
            default: return try create(method, path, fields, index)
            }
        } catch is Cut {
            if case .reset = turn.ending {
                isReset = true
                socket.resetAtClose()
            }
            return false
        }
    }

    // MARK: Steps

    private func create(_ method: String, _ path: String, _ fields: HTTPFields, _ index: Int) throws -> Bool {
        takeTurn()
        let length = fields["Content-Length"].flatMap { Int($0) } ?? 0
        let upload = DraftState.Upload(path: path, method: method, length: length)
        let resource = state.withLock { $0.begin(upload) }
        let version = Self.version(of: fields)
        let isResumable = version.map { version in state.withLock { $0.versions.contains(version) } } ?? false
        for (status, fields) in turn.informational { try send(status, fields, final: false) }
        if isResumable || turn.announcedVersion != nil, !turn.withholds104 {
            let announced = turn.announcedVersion ?? "\(version ?? 0)"
            try send(
                104, [("Upload-Draft-Interop-Version", announced), ("Location", turn.location ?? resource)],
                final: false)
        }
        return try receive(resource, length, version ?? 0, index)
    }

    private func append(_ path: String, _ fields: HTTPFields, _ index: Int) throws -> Bool {
        takeTurn()
        let length = fields["Content-Length"].flatMap { Int($0) } ?? 0
        let version = Self.version(of: fields) ?? 0
        guard let upload = state.withLock({ $0.uploads[path] }) else { return try answerEarly(404, []) }
        let isWelcome = state.withLock { state in
            guard upload.isBusy else { return true }
            state.intrusions += 1
            return false
        }
        let mediaType = fields["Content-Type"]
        guard isWelcome, version == 3 || mediaType == "application/partial-upload" else {
            return try answerEarly(415, [])
        }
        guard fields["Upload-Offset"] == String(upload.received), !upload.isWhole,
            fields[version == 3 ? "Upload-Incomplete" : "Upload-Complete"] == (version == 3 ? "?0" : "?1")
        else { return try answerEarly(409, [("Upload-Offset", String(upload.received))]) }
        state.withLock { $0.uploads[path]?.requests += 1 }
        for (status, fields) in turn.informational { try send(status, fields, final: false) }
        return try receive(path, length, version, index)
    }

    private func tellOffset(_ path: String, _ fields: HTTPFields) throws -> Bool {
        if let (status, fields) = state.withLock({ $0.offsetAnswers.popFirst() }) {
            guard status > 0 else { return false }
            try send(status, fields, final: true)
            return true
        }
        let found = state.withLock { state -> DraftState.Upload? in
            if state.uploads[path]?.isBusy == true { state.intrusions += 1 }
            return state.uploads[path]
        }
        guard let found else {
            try send(404, [], final: true)
            return true
        }
        try send(
            204,
            [("Upload-Offset", String(found.received)), ("Cache-Control", "no-store")]
                + Self.completeness(found.isWhole, Self.version(of: fields) ?? 0), final: true)
        return true
    }

    private func delete(_ path: String) throws -> Bool {
        guard deletions.wait(socket) else { return false }
        let isKnown = state.withLock { state -> Bool in
            state.deleted.append(path)
            return state.uploads.removeValue(forKey: path) != nil
        }
        try send(isKnown ? 204 : 404, [], final: true)
        return true
    }

    /// Receives the content of a creation or an append, and responds when the upload is complete.
    private func receive(_ resource: String, _ length: Int, _ version: Int, _ index: Int) throws -> Bool {
        state.withLock { $0.uploads[resource]?.isBusy = true }
        defer { state.withLock { $0.uploads[resource]?.isBusy = false } }
        if let early = turn.early, early.after == 0 { return try answerEarly(early.status, early.fields) }
        let limits = [turn.cutBody, turn.early?.after].compactMap { $0 }
        var (received, told) = (0, 0)
        var isEarly = false
        let (turn, state, socket) = (turn, state, socket)
        do {
            if turn.cutBody == 0 { throw Cut() }
            try reader.body(.length(length)) { piece in
                let room = limits.map { $0 - received }.min() ?? piece.count
                let taken = Array(piece.prefix(room))
                received += taken.count
                state.withLock {
                    $0.requests[index].bodyLength += taken.count
                    if turn.status == nil { $0.append(taken, to: resource) }
                }
                if let hold = turn.hold, received >= hold.after, !hold.gate.isOpen, !hold.gate.wait(socket) {
                    throw Cut()
                }
                if let early = turn.early, received >= early.after {
                    isEarly = true
                    throw Cut()
                }
                if let cut = turn.cutBody, received >= cut { throw Cut() }
                if let step = turn.progressEvery, received - told >= step, received < length {
                    told = received
                    let offset = state.withLock { $0.uploads[resource]?.received ?? 0 }
                    try self.send(
                        104, [("Upload-Draft-Interop-Version", "\(version)"), ("Upload-Offset", "\(offset)")],
                        final: false)
                }
            }
        } catch is Cut where isEarly {
            let early = turn.early ?? (0, 400, [])
            return try answerEarly(early.status, early.fields)
        } catch is Cut {
            state.withLock { $0.forget(turn.forgets, of: resource) }
            throw Cut()
        }
        if let (status, fields) = turn.status {
            try send(status, fields, final: true)
            return true
        }
        let answer = state.withLock { state in
            state.complete(resource)
            return state.answer
        }
        let fields = answer.fields + (version == 0 ? [] : Self.completeness(true, version))
        try send(answer.status, fields, body: answer.body, final: true)
        return true
    }

    // MARK: Responses

    private func takeTurn() {
        turn = state.withLock { $0.turns.popFirst() } ?? DraftServer.Turn()
        answerLeft = turn.cutAnswer ?? .max
    }

    /// Responds while content is still arriving, and reads on until the peer has read the response and closed.
    private func answerEarly(_ status: Int, _ fields: [(String, String)]) throws -> Bool {
        try send(status, fields + [("Connection", "close")], final: true)
        try socket.lingerUntilPeerCloses()
        return false
    }

    private func send(_ status: Int, _ fields: [(String, String)], body: String = "", final: Bool) throws {
        var text = "HTTP/1.1 \(status) Status\r\n" + HTTPFields(pairs: fields).lines
        if final, status != 204 { text += "Content-Length: \(body.utf8.count)\r\n" }
        let bytes = Array((text + "\r\n" + body).utf8)
        try socket.send(Array(bytes.prefix(answerLeft)))
        if bytes.count > answerLeft || final && answerLeft != .max { throw Cut() }
        answerLeft = answerLeft == .max ? .max : answerLeft - bytes.count
    }

    private static func version(of fields: HTTPFields) -> Int? {
        fields["Upload-Draft-Interop-Version"].flatMap { Int($0) }
    }

    private static func completeness(_ isComplete: Bool, _ version: Int) -> [(String, String)] {
        version == 3
            ? [("Upload-Incomplete", isComplete ? "?0" : "?1")] : [("Upload-Complete", isComplete ? "?1" : "?0")]
    }
}
