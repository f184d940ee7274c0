import Base
package import Core
import Formats

/// An in-memory object store with the subset of S3 for multipart uploads, which can fail in each step. It checks no
/// signatures.
package final class ObjectStore: Sendable {
    /// A step on an object or an upload.
    package enum Step: Hashable, Sendable { case put, head, get, delete, create, part, complete, abort, list, copy }

    /// The fault of one step.
    package enum Turn: Sendable {
        /// The step is not performed.
        case refuse(Int, String)
        /// 200, with an error in the body; the step is not performed.
        case errorInSuccess(String)
        /// The step is performed, and the connection is closed without a response.
        case loseAnswer
        /// The step is not performed, and the connection is closed.
        case close
        /// Waits before the step.
        case hold(Gate)
        /// Only half of the bytes are stored.
        case halve
        /// A response without its result.
        case empty
        case well
    }

    package struct Request: Sendable {
        package let step: Step
        package let key: String
        package let fields: HTTPFields
        package let length: Int
    }

    package struct Object: Sendable {
        package var bytes: [UInt8]
        package var fields: HTTPFields
        package var tag = ""
    }

    private struct Upload {
        var key: String
        var fields: HTTPFields
        var parts: [Int: [UInt8]] = [:]
    }

    private struct State {
        var objects: [String: Object] = [:]
        var uploads: [String: Upload] = [:]
        var requests: [Request] = []
        var turns: [Step: ArraySlice<Turn>] = [:]
        /// The response to every request, probes included.
        var refusal: Turn?
        var heedsConditions = true
        /// The reported modification time of every object.
        var time = "2099-01-01T00:00:00.000Z"
        var lastUpload = 0
        private var lastTag = 0

        mutating func put(_ key: String, _ bytes: [UInt8], _ fields: HTTPFields) {
            lastTag += 1
            objects[key] = Object(bytes: bytes, fields: fields, tag: "\"t\(lastTag)\"")
        }

        /// The reason why an object may not be written: status and code.
        func refusal(of received: ReceivedRequest) -> (Int, String)? {
            guard heedsConditions else { return nil }
            let object = objects[received.key]
            if received.fields["If-None-Match"] == "*", object != nil { return (412, "PreconditionFailed") }
            guard let tag = received.fields["If-Match"] else { return nil }
            guard let object else { return (404, "NoSuchKey") }
            return tag == object.tag ? nil : (412, "PreconditionFailed")
        }
    }

    package let port: UInt16
    private let server: SocketServer
    private let state: Locked<State>

    package init() throws {
        let state = Locked(State())
        self.state = state
        server = try SocketServer(port: 0) { Self.serve($0, state) }
        port = server.port
    }

    deinit { server.stop() }

    /// Sets the faults of the next requests of a step, one turn each.
    package func next(_ step: Step, _ turns: [Turn]) { state.withLock { $0.turns[step] = turns[...] } }

    /// Refuses all requests, including probes of the service, until the next call.
    package func refuseAll(_ status: Int, _ code: String) { state.withLock { $0.refusal = .refuse(status, code) } }

    package func refuseNothing() { state.withLock { $0.refusal = nil } }

    package func ignoreConditions() { state.withLock { $0.heedsConditions = false } }

    /// Reports from now on that objects and uploads are old.
    package func age() { state.withLock { $0.time = "2001-01-01T00:00:00.000Z" } }

    /// Stores an object directly.
    package func put(_ key: String, _ bytes: [UInt8]) {
        state.withLock { $0.put(key, bytes, HTTPFields()) }
    }

    /// Begins an upload that stays orphaned.
    package func beginUpload(_ key: String) {
        state.withLock { state in
            state.lastUpload += 1
            state.uploads["u\(state.lastUpload)"] = Upload(key: key, fields: HTTPFields())
        }
    }

    /// Objects by key, including the prefix.
    package var objects: [String: Object] { state.withLock { $0.objects } }

    package var uploads: Int { state.withLock { $0.uploads.count } }

    package func requests(_ step: Step) -> [Request] {
        state.withLock { $0.requests }.filter { $0.step == step && !$0.key.contains(".urlsessiond-probe") }
    }

    package func setting(_ name: String = "b") -> [String] {
        ["--bucket", "\(name)=s3://bucket/?endpoint=http://127.0.0.1:\(port)"]
    }

    /// The arguments for `--contents`.
    package var contents: [String] { ["--contents", "s3://bucket/?endpoint=http://127.0.0.1:\(port)"] }

    // MARK: Requests

    private struct ReceivedRequest {
        var step: Step
        var key: String
        var query: [String: String]
        var fields: HTTPFields
        var body: [UInt8]
        var head = false
    }

    private static func serve(_ socket: Socket, _ state: Locked<State>) {
        let reader = HTTPReader(socket)
        while let received = try? read(reader) {
            let turn = state.withLock { state -> Turn in
                state.requests.append(
                    Request(
                        step: received.step, key: received.key, fields: received.fields, length: received.body.count))
                if let refusal = state.refusal { return refusal }
                guard !received.key.contains(".urlsessiond-probe") else { return .well }
                return state.turns[received.step]?.popFirst() ?? .well
            }
            guard let answer = carryOut(received, turn, state), (try? socket.send(answer)) != nil else { break }
        }
        socket.shutdown()
    }

    private static func read(_ reader: HTTPReader) throws -> ReceivedRequest? {
        guard let (line, fields) = try reader.head() else { return nil }
        let words = line.split(separator: " ").map(String.init)
        let target = words[1].split(separator: "?", maxSplits: 1).map(String.init)
        var body: [UInt8] = []
        try reader.body(.length(fields["Content-Length"].flatMap { Int($0) } ?? 0)) { body += $0 }
        var query: [String: String] = [:]
        for pair in target.count > 1 ? target[1].split(separator: "&") : [] {
            let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
            query[parts[0]] = parts.count > 1 ? decoded(parts[1]) : ""
        }
        let key = decoded(target[0].split(separator: "/").dropFirst().joined(separator: "/"))
        let step: Step =
            switch (words[0], query["uploads"] != nil || query["list-type"] != nil, query["uploadId"] != nil) {
            case ("PUT", _, _) where fields["x-amz-copy-source"] != nil: .copy
            case ("GET", true, _): .list
            case ("POST", true, _): .create
            case ("PUT", _, true): .part
            case ("POST", _, true): .complete
            case ("DELETE", _, true): .abort
            case ("PUT", _, _): .put
            case ("HEAD", _, _): .head
            case ("DELETE", _, _): .delete
            default: .get
            }
        return ReceivedRequest(step: step, key: key, query: query, fields: fields, body: body, head: words[0] == "HEAD")
    }

    private static func decoded(_ text: String) -> String {
        String(decoding: PercentCoding.decode(text.utf8).bytes, as: UTF8.self)
    }

    /// - Returns: `nil` if the connection is closed instead.
    private static func carryOut(_ received: ReceivedRequest, _ turn: Turn, _ state: Locked<State>) -> [UInt8]? {
        switch turn {
        case .refuse(let status, let code): return error(status, code, received)
        case .errorInSuccess(let code): return error(200, code, received)
        case .close: return nil
        case .loseAnswer:
            _ = state.withLock { perform(received, &$0) }
            return nil
        case .hold(let gate):
            gate.pass()
            return state.withLock { perform(received, &$0) }
        case .halve:
            var half = received
            half.body = Array(received.body.prefix(received.body.count / 2))
            return state.withLock { perform(half, &$0) }
        case .empty: return answer(200)
        case .well: return state.withLock { perform(received, &$0) }
        }
    }

    private static func perform(_ received: ReceivedRequest, _ state: inout State) -> [UInt8] {
        let upload = received.query["uploadId"] ?? ""
        switch received.step {
        case .put, .complete:
            if let (status, code) = state.refusal(of: received) { return error(status, code, received) }
            if received.step == .put {
                state.put(received.key, received.body, received.fields)
            } else {
                guard let taken = state.uploads.removeValue(forKey: upload) else {
                    return error(404, "NoSuchUpload", received)
                }
                let bytes = taken.parts.sorted { $0.key < $1.key }.flatMap(\.value)
                state.put(received.key, bytes, taken.fields)
            }
            let tag = state.objects[received.key]?.tag ?? ""
            return answer(200, [("ETag", tag)], "<CompleteMultipartUploadResult/>")
        case .head, .get:
            guard let object = state.objects[received.key] else { return error(404, "NoSuchKey", received) }
            let kept = object.fields.fields.filter { $0.name.asciiLowercased.hasPrefix("x-amz-meta-") }
            let range = bounds(of: received.fields["Range"])
            guard range.map({ $0.upperBound < object.bytes.count }) ?? true else {
                return error(416, "InvalidRange", received)
            }
            return answer(
                range == nil ? 200 : 206, [("ETag", object.tag)] + kept.map { ($0.name, $0.value) },
                range.map { Array(object.bytes[$0]) } ?? object.bytes, sendsBody: received.step == .get)
        case .delete:
            state.objects[received.key] = nil
            return answer(204)
        case .create:
            state.lastUpload += 1
            let id = "u\(state.lastUpload)"
            state.uploads[id] = Upload(key: received.key, fields: received.fields)
            return answer(
                200, [], "<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>")
        case .part:
            guard state.uploads[upload] != nil, let number = received.query["partNumber"].flatMap({ Int($0) }) else {
                return error(404, "NoSuchUpload", received)
            }
            state.uploads[upload]?.parts[number] = received.body
            return answer(200, [("ETag", "\"p\(number)\"")])
        case .copy: return copy(received, &state)
        case .abort:
            return state.uploads.removeValue(forKey: upload) == nil ? error(404, "NoSuchUpload", received) : answer(204)
        case .list: return list(received, state)
        }
    }

    /// ListObjectsV2 and ListMultipartUploads.
    private static func list(_ received: ReceivedRequest, _ state: State) -> [UInt8] {
        let wanted = received.query["prefix"] ?? ""
        if received.query["list-type"] != nil {
            let start = received.query["start-after"] ?? ""
            let keys = state.objects.keys.filter { $0.hasPrefix(wanted) && $0 > start }.sorted().prefix(2)
            let items = keys.map {
                "<Contents><Key>\($0)</Key><LastModified>\(state.time)</LastModified></Contents>"
            }
            return answer(200, [], "<ListBucketResult>\(items.joined())</ListBucketResult>")
        }
        let items = state.uploads.filter { $0.value.key.hasPrefix(wanted) }.map {
            "<Upload><Key>\($0.value.key)</Key><UploadId>\($0.key)</UploadId>"
                + "<Initiated>\(state.time)</Initiated></Upload>"
        }
        return answer(200, [], "<ListMultipartUploadsResult>\(items.joined())</ListMultipartUploadsResult>")
    }

    /// CopyObject and UploadPartCopy.
    private static func copy(_ received: ReceivedRequest, _ state: inout State) -> [UInt8] {
        let path = decoded(received.fields["x-amz-copy-source"] ?? "")
        guard let source = state.objects[path.split(separator: "/").dropFirst().joined(separator: "/")] else {
            return error(404, "NoSuchKey", received)
        }
        if let tag = received.fields["x-amz-copy-source-if-match"], tag != source.tag {
            return error(412, "PreconditionFailed", received)
        }
        guard let number = received.query["partNumber"].flatMap({ Int($0) }) else {
            state.put(received.key, source.bytes, received.fields)
            let tag = state.objects[received.key]?.tag ?? ""
            return answer(200, [], "<CopyObjectResult><ETag>\(tag)</ETag></CopyObjectResult>")
        }
        guard let range = bounds(of: received.fields["x-amz-copy-source-range"]), range.upperBound < source.bytes.count
        else { return error(416, "InvalidRange", received) }
        state.uploads[received.query["uploadId"] ?? ""]?.parts[number] = Array(source.bytes[range])
        return answer(200, [], "<CopyPartResult><ETag>\"p\(number)\"</ETag></CopyPartResult>")
    }

    /// The bytes that a field such as `Range: bytes=0-9` names.
    private static func bounds(of range: String?) -> ClosedRange<Int>? {
        let ends = range?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? []
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : nil
    }

    private static func error(_ status: Int, _ code: String, _ received: ReceivedRequest) -> [UInt8] {
        let body = received.head ? "" : "<Error><Code>\(code)</Code><Message>\(code), so there</Message></Error>"
        return answer(status, [], body)
    }

    private static func answer(_ status: Int, _ fields: [(String, String)] = [], _ body: String = "") -> [UInt8] {
        answer(status, fields, Array(body.utf8), sendsBody: true)
    }

    private static func answer(
        _ status: Int, _ fields: [(String, String)], _ body: [UInt8], sendsBody: Bool
    ) -> [UInt8] {
        let lines = HTTPFields(pairs: fields).lines
        let length = status == 204 ? "" : "Content-Length: \(body.count)\r\n"
        return Array("HTTP/1.1 \(status) Answer\r\n\(lines)\(length)\r\n".utf8) + (sendsBody ? body : [])
    }
}
