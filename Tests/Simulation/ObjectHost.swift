import Base
import Buckets
import CSimulation
import Core
import Formats
import TransferEngine

/// A store of objects that speaks S3, with one bucket, and its misbehaviours. It keeps its objects when the program
/// crashes, and its clock does not jump.
final class ObjectHost: @unchecked Sendable {
    /// The operator's name for the bucket.
    static let name = "b"
    static let prefixOfApps = "apps/", prefixOfContents = "contents/"

    struct Object {
        var bytes: [UInt8]
        var tag: String
        var fields: [(String, String)]
        var modified: Timestamp
        /// Whether the program could not know any more that it would be written.
        var isLate: Bool
        let writer: Int32
        let writtenAt: Int64
    }

    private struct Upload {
        var key: String
        var fields: [(String, String)]
        var parts: [Int: [UInt8]] = [:]
        var begun: Timestamp
        /// As of an object: a daily sweep removes it.
        let isLate: Bool
    }

    private let simulator: Simulator
    private let network: Network
    private let dice = Dice.stores
    private var objects: [String: Object] = [:]
    private var uploads: [String: Upload] = [:]
    private var last = 0
    /// Whether the credentials are refused for a while.
    private var isRefusing = false
    /// Whether the store heeds conditions; whether its entity tags are the MD5 of the bytes.
    private let heedsConditions: Bool
    private let tagsAreDigests: Bool
    private let startedAt: Timestamp

    private var trace: Trace { simulator.trace }

    init(_ simulator: Simulator, _ network: Network) {
        self.simulator = simulator
        self.network = network
        heedsConditions = dice.chance(700)
        tagsAreDigests = dice.chance(700)
        startedAt = Timestamp(milliseconds: Clock.system.wall())
    }

    /// A client of the bucket, for one life of the program.
    static func client(_ prefix: String, _ egress: EgressPolicy, _ log: Log) throws -> BucketClient {
        BucketClient(
            Bucket(
                name: "bucket", prefix: prefix, region: "us-east-1", endpoint: try ParsedURL("http://b1.test"),
                style: .path),
            credentials: CredentialsSource(BucketCredentials(accessKeyID: "id", secretAccessKey: "secret")),
            exchanges: try Exchanges(log: log), egress: egress, clock: .system)
    }

    // MARK: Looking at it

    /// The object that an app has named.
    func ofApps(_ key: String) -> Object? { objects[Self.prefixOfApps + key] }

    /// The keys of contents and bodies, as the program names them.
    var contentKeys: [String] {
        objects.filter { $0.key.hasPrefix(Self.prefixOfContents + "all/") && !$0.value.isLate }.keys.sorted()
            .map { String($0.dropFirst(Self.prefixOfContents.count)) }
    }

    /// The keys of published sets.
    var setKeys: [String] {
        objects.filter { $0.key.hasPrefix(Self.prefixOfApps + "sets/") && !$0.value.isLate }.keys.sorted()
    }

    var uploadKeys: [String] { uploads.values.filter { !$0.isLate }.map { "upload of \($0.key)" }.sorted() }

    /// The objects that a machine has written since a time, when another one had its place: a daily sweep removes them.
    func forget(writtenBy machine: Int32, since time: Int64) {
        for (key, object) in objects where object.writer == machine && object.writtenAt >= time {
            objects[key]?.isLate = true
            trace.met("object of a fenced node")
        }
    }

    // MARK: Requests

    private enum Step { case put, copy, read, delete, create, part, complete, abort, listObjects, listUploads }

    private struct Call {
        var step: Step
        var key: String
        var query: [String: String]
        var request: Request
        let machine: Int32
        var isHead: Bool { request.method == "HEAD" }
    }

    private func call(_ request: Request, of machine: Int32) -> Call? {
        let target = request.target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        var query: [String: String] = [:]
        for pair in target.count > 1 ? target[1].split(separator: "&") : [] {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(decoded)
            query[sides[0]] = sides.count > 1 ? sides[1] : ""
        }
        let path = decoded(target[0])
        guard path == "/bucket" || path.hasPrefix("/bucket/") else { return nil }
        let (lists, hasUpload) = (query["uploads"] != nil, query["uploadId"] != nil)
        let step: Step? =
            switch request.method {
            case "PUT": hasUpload ? .part : request.header("x-amz-copy-source") != nil ? .copy : .put
            case "HEAD": .read
            case "GET": lists ? .listUploads : query["list-type"] != nil ? .listObjects : .read
            case "DELETE": hasUpload ? .abort : .delete
            case "POST": lists ? .create : hasUpload ? .complete : nil
            default: nil
            }
        return step.map {
            Call(step: $0, key: String(path.dropFirst(8)), query: query, request: request, machine: machine)
        }
    }

    private func decoded(_ text: Substring) -> String {
        String(decoding: PercentCoding.decode(text.utf8).bytes, as: UTF8.self)
    }

    func serve(_ request: Request, _ connection: Network.Connection) {
        trace.note("store \(request.method) \(request.target) \(request.body.count) of machine \(connection.machine)")
        guard let call = call(request, of: connection.machine) else {
            return trace.fail("The store got \(request.method) \(request.target).")
        }
        if let fault = fault(in: call) { return trace.fail("The store got \(fault).") }
        let delay = misbehaves(200) ? dice.between(50, 5000) : dice.between(0.5, 20)
        simulator.after(delay) { [self] in respond(call, connection) }
    }

    /// A request that no client may send.
    private func fault(in call: Call) -> String? {
        let request = call.request
        guard request.header("authorization")?.hasPrefix("AWS4-HMAC-SHA256 ") == true else { return "no signature" }
        if let digest = request.header("x-amz-content-sha256"), digest.utf8.count == 64,
            digest != Digest.of(request.body).hexadecimal
        {
            return "other bytes than were signed"
        }
        if call.step == .put, call.key.hasPrefix(Self.prefixOfContents + "all/"), let object = objects[call.key],
            object.bytes != request.body
        {
            return "other bytes for the content \(call.key)"
        }
        return nil
    }

    private func misbehaves(_ permille: Int) -> Bool {
        simulator.plan.has(.storeErrors) && !network.isCalm && dice.chance(permille)
    }

    private func respond(_ call: Call, _ connection: Network.Connection) {
        // A store may carry out a request whose connection has ended.
        guard connection.isOpen else {
            if dice.chance(500) { _ = perform(call, isLate: true) }
            return
        }
        if isRefusing { return send(error(403, "AccessDenied"), to: call, connection) }
        if misbehaves(60) { return send(error(503, "SlowDown"), to: call, connection) }
        if misbehaves(40) { return send(error(500, "InternalError"), to: call, connection) }
        if misbehaves(40) { return network.hangUp(connection, resets: true) }
        if misbehaves(60) {
            trace.met("store performs \(call.step) without a response")
            _ = perform(call)
            return network.hangUp(connection, resets: dice.chance(500))
        }
        if misbehaves(20) {
            trace.met("store performs \(call.step) later")
            simulator.after(dice.between(100, 20_000)) { [self] in _ = perform(call, isLate: true) }
            return network.hangUp(connection, resets: true)
        }
        if misbehaves(15) { return trace.met("store never responds") }
        if call.step == .complete, misbehaves(100) {
            trace.met("store reports an error with the status 200")
            if dice.chance(300) { _ = perform(call) }
            return send(Response(status: 200, body: error(500, "InternalError").body), to: call, connection)
        }
        if call.query["uploadId"] != nil, misbehaves(20), let id = call.query["uploadId"] {
            trace.met("store forgets an upload")
            uploads[id] = nil
        }
        let response = perform(call)
        if call.step == .read, !call.isHead, misbehaves(60) {
            trace.met("store cuts an object")
            return send(response, to: call, connection, cutAt: dice.below(response.body.count + 1))
        }
        send(response, to: call, connection)
    }

    /// Refuses the credentials now and then, while there is trouble.
    func refuseSometimes() {
        simulator.after(dice.between(1000, 60_000)) { [self] in
            guard !network.isCalm else { return }
            trace.note("the store refuses")
            trace.met("store refuses the credentials")
            isRefusing = true
            simulator.after(dice.between(100, 10_000)) { [self] in
                isRefusing = false
                trace.note("the store accepts")
                refuseSometimes()
            }
        }
    }

    // MARK: Steps

    private struct Response {
        var status: Int
        var fields: [(String, String)] = []
        var body: [UInt8] = []
    }

    private func error(_ status: Int, _ code: String) -> Response {
        Response(status: status, body: Array("<Error><Code>\(code)</Code><Message>no</Message></Error>".utf8))
    }

    private func document(_ text: String) -> Response { Response(status: 200, body: Array(text.utf8)) }

    private func newNumber() -> Int {
        last += 1
        return last
    }

    private var now: Timestamp { startedAt + .milliseconds(simulator.now) }

    private func perform(_ call: Call, isLate: Bool = false) -> Response {
        let id = call.query["uploadId"] ?? ""
        switch call.step {
        case .put: return refusal(call) ?? put(call, call.request.body, fields(call.request), isLate)
        case .copy: return copy(call, isLate)
        case .read: return read(call)
        case .delete:
            objects[call.key] = nil
            return Response(status: 204)
        case .create:
            let id = "u\(newNumber())"
            uploads[id] = Upload(key: call.key, fields: fields(call.request), begun: now, isLate: isLate)
            return document("<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>")
        case .part:
            guard let number = call.query["partNumber"].flatMap({ Int($0) }), uploads[id]?.key == call.key else {
                return error(404, "NoSuchUpload")
            }
            guard call.request.header("x-amz-copy-source") != nil else {
                uploads[id]?.parts[number] = call.request.body
                return Response(status: 200, fields: [("ETag", tag(of: call.request.body))])
            }
            guard let bytes = source(of: call)?.bytes,
                let range = range(call.request.header("x-amz-copy-source-range")),
                range.upperBound < bytes.count
            else { return error(404, "NoSuchKey") }
            uploads[id]?.parts[number] = Array(bytes[range])
            trace.met("object copied as a part")
            return document("<CopyPartResult><ETag>\(tag(of: Array(bytes[range])))</ETag></CopyPartResult>")
        case .complete: return complete(call, id, isLate)
        case .abort: return uploads.removeValue(forKey: id) == nil ? error(404, "NoSuchUpload") : Response(status: 204)
        case .listObjects: return listObjects(call)
        case .listUploads: return listUploads(call)
        }
    }

    private func fields(_ request: Request) -> [(String, String)] {
        request.headers.filter { $0.name.hasPrefix("x-amz-meta-") || $0.name == "content-type" }.map {
            ($0.name, $0.value)
        }
    }

    private func tag(of bytes: [UInt8]) -> String {
        tagsAreDigests ? "\"\(Digest.of(bytes, .md5).hexadecimal)\"" : "\"t\(newNumber())\""
    }

    private func refusal(_ call: Call) -> Response? {
        guard heedsConditions else { return nil }
        let object = objects[call.key]
        if call.request.header("if-none-match") == "*", object != nil { return error(412, "PreconditionFailed") }
        guard let tag = call.request.header("if-match") else { return nil }
        guard let object else { return error(404, "NoSuchKey") }
        return tag == object.tag ? nil : error(412, "PreconditionFailed")
    }

    private func put(_ call: Call, _ bytes: [UInt8], _ fields: [(String, String)], _ isLate: Bool) -> Response {
        let object = Object(
            bytes: bytes, tag: tag(of: bytes), fields: fields, modified: now, isLate: isLate, writer: call.machine,
            writtenAt: simulator.now)
        objects[call.key] = object
        return Response(status: 200, fields: [("ETag", object.tag)])
    }

    private func copy(_ call: Call, _ isLate: Bool) -> Response {
        guard let object = source(of: call) else { return error(404, "NoSuchKey") }
        if let tag = call.request.header("x-amz-copy-source-if-match"), tag != object.tag {
            return error(412, "PreconditionFailed")
        }
        let tag = put(call, object.bytes, fields(call.request), isLate).fields.first?.1 ?? ""
        trace.met("object copied")
        return document("<CopyObjectResult><ETag>\(tag)</ETag></CopyObjectResult>")
    }

    /// The object that a request copies.
    private func source(of call: Call) -> Object? {
        objects[String(decoded((call.request.header("x-amz-copy-source") ?? "")[...]).dropFirst("/bucket/".count))]
    }

    private func range(_ field: String?) -> ClosedRange<Int>? {
        let ends = field?.dropFirst("bytes=".count).split(separator: "-").compactMap { Int($0) } ?? []
        return ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : nil
    }

    private func read(_ call: Call) -> Response {
        guard let object = objects[call.key] else { return error(404, "NoSuchKey") }
        let fields = [("ETag", object.tag)] + object.fields
        guard let range = call.request.header("range") else {
            return Response(status: 200, fields: fields, body: object.bytes)
        }
        guard let wanted = self.range(range), wanted.lowerBound < object.bytes.count else {
            return error(416, "InvalidRange")
        }
        let part = object.bytes[wanted.lowerBound...min(wanted.upperBound, object.bytes.count - 1)]
        let content = ("Content-Range", "bytes \(part.startIndex)-\(part.endIndex - 1)/\(object.bytes.count)")
        return Response(status: 206, fields: fields + [content], body: Array(part))
    }

    private func complete(_ call: Call, _ id: String, _ isLate: Bool) -> Response {
        guard let upload = uploads[id], upload.key == call.key else { return error(404, "NoSuchUpload") }
        let named = String(decoding: call.request.body, as: UTF8.self).split(separator: "<PartNumber>").dropFirst()
        let numbers = named.compactMap { Int($0.prefix { $0.isNumber }) }
        let parts = numbers.compactMap { upload.parts[$0] }
        guard !parts.isEmpty, parts.count == numbers.count, numbers == Array(1...numbers.count) else {
            return error(400, "InvalidPart")
        }
        guard parts.dropLast().allSatisfy({ $0.count >= 5 << 20 }) else { return error(400, "EntityTooSmall") }
        if let refusal = refusal(call) { return refusal }
        uploads[id] = nil
        trace.met("object of \(parts.count) parts")
        _ = put(call, parts.reduce(into: []) { $0 += $1 }, upload.fields, isLate)
        return document("<CompleteMultipartUploadResult/>")
    }

    private static let pageLength = 3

    private func listObjects(_ call: Call) -> Response {
        let (prefix, after) = (call.query["prefix"] ?? "", call.query["start-after"] ?? "")
        let page = objects.filter { $0.key.hasPrefix(prefix) && $0.key > after }.sorted { $0.key < $1.key }
            .prefix(Self.pageLength)
        let items = page.map {
            "<Contents><Key>\($0.key)</Key><LastModified>\($0.value.modified.rfc3339)</LastModified></Contents>"
        }
        return document("<ListBucketResult>\(items.joined())</ListBucketResult>")
    }

    private func listUploads(_ call: Call) -> Response {
        let prefix = call.query["prefix"] ?? ""
        let after = (call.query["key-marker"] ?? "", call.query["upload-id-marker"] ?? "")
        let found = uploads.filter { $0.value.key.hasPrefix(prefix) && ($0.value.key, $0.key) > after }
            .sorted { ($0.value.key, $0.key) < ($1.value.key, $1.key) }
        let page = found.prefix(Self.pageLength)
        var text = page.map {
            "<Upload><Key>\($0.value.key)</Key><UploadId>\($0.key)</UploadId>"
                + "<Initiated>\($0.value.begun.rfc3339)</Initiated></Upload>"
        }.joined()
        if found.count > page.count, let last = page.last {
            text += "<IsTruncated>true</IsTruncated><NextKeyMarker>\(last.value.key)</NextKeyMarker>"
            text += "<NextUploadIdMarker>\(last.key)</NextUploadIdMarker>"
        }
        return document("<ListMultipartUploadsResult>\(text)</ListMultipartUploadsResult>")
    }

    private func send(
        _ response: Response, to call: Call, _ connection: Network.Connection, cutAt end: Int? = nil
    ) {
        trace.note("store responds \(response.status) with \(response.body.count)")
        var head = "HTTP/1.1 \(response.status) Status\r\n"
        for (name, value) in response.fields { head += "\(name): \(value)\r\n" }
        if response.status != 204 { head += "Content-Length: \(response.body.count)\r\n" }
        network.send(head + "\r\n", on: connection)
        if !call.isHead { network.send(Array(response.body.prefix(end ?? .max)), on: connection) }
        guard end == nil else { return network.hangUp(connection) }
        network.finish(connection, closes: false)
    }
}
