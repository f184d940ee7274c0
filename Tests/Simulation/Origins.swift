import Base
import CSimulation
import Core
import Formats

/// The origins, with their resources and misbehaviours.
final class Origins: @unchecked Sendable {
    private let simulator: Simulator
    private let network: Network
    private(set) var resources: [Resource] = []
    private var shared: [Resource] = []
    /// Resources under a path besides `/r/NUMBER`.
    private var paths: [String: Resource] = [:]
    private let dice = Dice.network
    private var trace: Trace { simulator.trace }
    /// Requests in flight.
    private(set) var answering = 0
    private let uploads: UploadHost

    /// The long resources of runs with readers of long contents.
    private static let fewLong = 4

    static let user = "user", password = "secret"

    init(_ simulator: Simulator, _ network: Network) {
        self.simulator = simulator
        self.network = network
        uploads = UploadHost(simulator, network)
    }

    private func has(_ fault: Plan.Fault, _ permille: Int) -> Bool {
        simulator.plan.has(fault) && !network.isCalm && dice.chance(permille)
    }

    func makeResource() -> Resource {
        let length = dice.pick([0, 1, 900, 4096, 30_000, 65_536, 65_537, 100_000, 200_000, 300_001])
        // Parts in the bucket have 8 MiB.
        let (isLong, more) = simulator.plan.has(.objects) ? (dice.chance(30), 13_000_000) : (dice.chance(25), 4_000_000)
        let isOneOfFew = simulator.plan.has(.longReads) && resources.count { $0.length > 1_000_000 } < Self.fewLong
        let odd = simulator.plan.has(.validators) && dice.chance(400)
        let longLength = isOneOfFew ? 17_000_000 + dice.below(8_000_000) : 5_000_000 + dice.below(more)
        let resource = Resource(
            resources.count, length: isLong || isOneOfFew ? longLength : length, origin: 1 + dice.below(3),
            validator: odd ? dice.pick([.weak, .date, .none]) : .etag, acceptsRanges: !(odd && dice.chance(300)),
            isGuarded: simulator.plan.has(.challenges) && dice.chance(200))
        if simulator.plan.has(.sharing) {
            let stores = Dice.stores
            resource.reuse.cacheControl = stores.pick([
                nil, "max-age=2", "max-age=30", "max-age=3600", "no-cache", "no-store", "private, max-age=5",
            ])
            resource.reuse.vary = stores.pick([nil, nil, nil, nil, nil, nil, "X-A", "X-A", "X-A", "*"])
        }
        resources.append(resource)
        return resource
    }

    /// A list of resources. Its later versions are other lists, or none.
    func makeList(nextPage: String? = nil, _ document: @escaping (_ version: Int) -> [UInt8]) -> Resource {
        let list = Resource(resources.count, origin: 1 + dice.below(3), nextPage: nextPage, document: document)
        resources.append(list)
        return list
    }

    /// Gives a resource a further path, at each of the origins.
    func name(_ resource: Resource, _ path: String) { paths[path] = resource }

    /// A resource that several tasks request.
    func shareResource() -> Resource {
        let stores = Dice.stores
        guard stores.chance(700), let known = shared.randomElement(using: stores) else {
            let resource = makeResource()
            shared.append(resource)
            return resource
        }
        return known
    }

    /// Whether the transfer of the requested resource crashes the program.
    func isPoisonous(_ request: Request) -> Bool {
        guard simulator.plan.has(.poisons), !network.isCalm, let resource = resource(of: request) else { return false }
        guard resource.number % 4 == 0, resource.crashesLeft > 0, Dice.extras.chance(700) else { return false }
        resource.crashesLeft -= 1
        return true
    }

    // MARK: Responses

    private func resource(of request: Request) -> Resource? {
        if let named = paths[request.target] { return named }
        let parts = request.target.split(separator: "/")
        guard parts.count >= 2, parts[0] == "r", let number = Int(parts[1]), resources.indices.contains(number) else {
            return nil
        }
        return resources[number]
    }

    /// Reads the head of a request before its body.
    func preview(_ request: Request, _ connection: Network.Connection) {
        if uploads.owns(request) { return uploads.preview(request, on: connection) }
        guard request.method != "GET", let resource = resource(of: request) else { return }
        uploads.begin(request, at: resource, on: connection)
    }

    func serve(_ request: Request, _ connection: Network.Connection) {
        let range = request.header("range") ?? ""
        trace.note("origin \(request.method) \(request.target) \(range) \(request.body.count)")
        if uploads.owns(request) { return uploads.serve(request, connection) }
        guard let resource = resource(of: request) else { return answer(404, body: [], on: connection) }
        if request.method == "PUT" || request.method == "POST" { resource.received.append(request.body) }
        let fields = uploads.completed(request, on: connection)
        let delay = has(.slowness, 300) ? dice.between(100, 8000) : dice.between(0.2, 20)
        simulator.after(delay) { [self] in respond(request, resource, fields, connection) }
    }

    /// - Parameter fields: Of the response to an upload.
    private func respond(
        _ request: Request, _ resource: Resource, _ fields: [(String, String)], _ connection: Network.Connection
    ) {
        guard connection.isOpen else { return }
        if has(.versions, 120) {
            resource.change()
            trace.met("version changed")
        }
        if has(.resets, 80) {
            trace.met("reset before the head")
            return network.hangUp(connection, resets: true)
        }
        if has(.stalls, 60) { return trace.met("stall before the head") }
        if has(.statuses, 150) { return misbehave(request, connection) }
        if has(.frames, 60) {
            trace.met("garbage")
            network.send(
                dice.pick([
                    "NOT HTTP AT ALL\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 7\r\n\r\nabcde",
                    "HTTP/1.1 200",
                ]), on: connection)
            return network.hangUp(connection)
        }
        if has(.redirects, 200) {
            trace.met("redirect")
            let status = dice.pick(request.method == "GET" ? [301, 302, 303, 307, 308] : [307, 308])
            let host = dice.chance(500) ? "http://o\(1 + dice.below(3)).test" : ""
            return answer(status, [("Location", "\(host)/r/\(resource.number)")], body: [], on: connection)
        }
        if resource.isGuarded, request.header("authorization") != basic {
            trace.met("challenge")
            return answer(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: Array("no".utf8), on: connection)
        }
        if request.method == "GET" || request.method == "HEAD" {
            give(request, resource, connection)
        } else {
            take(request, resource, fields, connection)
        }
    }

    private var basic: String { "Basic " + Base64.encode(Array("\(Self.user):\(Self.password)".utf8)) }

    private func misbehave(_ request: Request, _ connection: Network.Connection) {
        let status = dice.pick([500, 502, 503, 503, 429, 408, 404, 403, 204])
        trace.met("status \(status)")
        var headers: [(String, String)] = []
        if status == 503 || status == 429, dice.chance(600) {
            headers.append(("Retry-After", dice.pick(["1", "5", "0", "x", "-3"])))
        }
        answer(status, headers, body: status == 204 ? [] : Array("sorry".utf8), on: connection)
    }

    private func take(
        _ request: Request, _ resource: Resource, _ fields: [(String, String)], _ connection: Network.Connection
    ) {
        if has(.cuts, 200) {
            trace.met("cut after an upload")
            return network.hangUp(connection)
        }
        answer(dice.pick([200, 201, 204]), fields, body: [], on: connection)
    }

    private func give(_ request: Request, _ resource: Resource, _ connection: Network.Connection) {
        let version = resource.version
        let variant = resource.variant(request.header("x-a").flatMap { Int($0) } ?? 0)
        let representation = Resource.Representation(version: version, variant: variant)
        let bytes = resource.bytes(representation)
        var headers: [(String, String)] = [("Content-Type", "application/octet-stream")]
        let tag = "\"\(resource.number)-\(version)\(variant == 0 ? "" : "-\(variant)")\""
        // No other resource has the same date: a changed URL may continue the bytes of the former one.
        let (minute, second) = (100 + resource.number % 60, 100 + version % 60)
        let date = "Tue, 01 Sep 2026 00:\(String(minute).dropFirst()):\(String(second).dropFirst()) GMT"
        switch resource.validator {
        case .etag: headers.append(("ETag", tag))
        case .weak: headers.append(("ETag", "W/\(tag)"))
        case .date:
            headers.append(("Last-Modified", date))
            headers.append(("Date", "Tue, 01 Sep 2026 10:00:00 GMT"))
        case .none: break
        }
        headers.append(("Accept-Ranges", resource.acceptsRanges ? "bytes" : "none"))
        if let control = resource.reuse.cacheControl { headers.append(("Cache-Control", control)) }
        if let vary = resource.reuse.vary { headers.append(("Vary", vary)) }
        if let page = resource.nextPage { headers.append(("Link", "<\(page)>; rel=\"next\"")) }
        resource.note(served: representation, at: simulator.now)
        let isConfirmed =
            switch resource.validator {
            case .etag: request.header("if-none-match") == tag
            case .weak: request.header("if-none-match") == "W/\(tag)"
            case .date: request.header("if-modified-since") == date
            case .none: false
            }
        if isConfirmed {
            trace.met("304")
            return answer(304, headers, body: [], on: connection)
        }
        let condition = request.header("if-range")
        let matches = condition == nil || condition == tag || condition == date
        guard matches, resource.acceptsRanges, let range = range(request, of: bytes.count), !has(.ranges, 150) else {
            return answer(200, headers, body: bytes, of: resource, on: connection)
        }
        guard range.lowerBound < bytes.count else {
            trace.met("416")
            return answer(416, headers + [("Content-Range", "bytes */\(bytes.count)")], body: [], on: connection)
        }
        trace.met("206")
        var (start, total) = (range.lowerBound, "\(bytes.count)")
        if has(.ranges, 300) {
            trace.met("odd range")
            switch dice.below(5) {
            case 0: start = max(0, start - 1000)
            case 1: total = "\(bytes.count + 1)"
            case 2: return answer(206, headers, body: Array(bytes[range]), of: resource, on: connection)
            case 3: total = "*"
            default: start = min(range.upperBound - 1, start + 1)
            }
        }
        let part = Array(bytes[start..<range.upperBound])
        answer(
            206, headers + [("Content-Range", "bytes \(start)-\(range.upperBound - 1)/\(total)")], body: part,
            of: resource, on: connection)
    }

    private func range(_ request: Request, of count: Int) -> Range<Int>? {
        guard let text = request.header("range"), text.hasPrefix("bytes=") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2, let first = Int(ends[0]) else { return nil }
        let last = Int(ends[1]).map { min($0 + 1, count) } ?? count
        return first < count ? first..<max(first, last) : count..<count
    }

    private func answer(
        _ status: Int, _ headers: [(String, String)] = [], body: [UInt8], of resource: Resource? = nil,
        on connection: Network.Connection
    ) {
        var head = "HTTP/1.1 \(status) Status\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        let hasBody = status != 204 && status != 304
        // 0: a length, 1: chunks, 2: until the end of the connection.
        let framing = simulator.plan.has(.frames) && !network.isCalm && hasBody ? dice.pick([0, 0, 1, 2]) : 0
        if framing == 0, hasBody { head += "Content-Length: \(body.count)\r\n" }
        if framing == 1 { head += "Transfer-Encoding: chunked\r\n" }
        if framing == 2 { head += "Connection: close\r\n" }
        trace.note("origin answers \(status) with \(body.count)")
        network.send(head + "\r\n", on: connection)
        guard hasBody else { return network.finish(connection, closes: false) }
        var end: Int?
        var fate = Fate.whole
        if has(.cuts, 150) { (end, fate) = (dice.below(body.count + 1), .cut) }
        if has(.resets, 100) { (end, fate) = (dice.below(body.count + 1), .reset) }
        if has(.stalls, 60) { (end, fate) = (dice.below(body.count + 1), .stall) }
        if fate == .cut, framing == 2 { resource?.mayBeShort = true }
        if fate != .whole { trace.met("\(fate) in the body, framing \(framing)") }
        let slow = has(.slowness, 300)
        pour(body, from: 0, to: end ?? body.count, fate, framing, slow, connection)
    }

    private enum Fate { case whole, cut, reset, stall }

    private func pour(
        _ body: [UInt8], from: Int, to end: Int, _ fate: Fate, _ framing: Int, _ isSlow: Bool,
        _ connection: Network.Connection
    ) {
        guard connection.isOpen else { return }
        // A full connection pauses its origin.
        guard network.isSent(connection) else {
            return simulator.after(20) { [self] in pour(body, from: from, to: end, fate, framing, isSlow, connection) }
        }
        let next = min(end, from + 1 + dice.below(body.count > 1_000_000 ? 400_000 : 40_000))
        let piece = Array(body[from..<next])
        if framing == 1 {
            if !piece.isEmpty {
                network.send("\(String(piece.count, radix: 16))\r\n", on: connection)
                network.send(piece, on: connection)
                network.send("\r\n", on: connection)
            }
        } else {
            network.send(piece, on: connection)
        }
        guard next == end else {
            return simulator.after(isSlow ? dice.between(50, 1500) : dice.between(0.1, 4)) { [self] in
                pour(body, from: next, to: end, fate, framing, isSlow, connection)
            }
        }
        switch fate {
        case .stall: break
        case .reset: network.hangUp(connection, resets: true)
        case .cut: network.hangUp(connection)
        case .whole:
            if framing == 1 { network.send("0\r\n\r\n", on: connection) }
            network.finish(connection, closes: framing == 2)
        }
    }
}
