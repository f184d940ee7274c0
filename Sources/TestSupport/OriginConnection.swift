import Base
import Core
import Glibc

/// One connection of an origin, served by the thread that owns it.
final class OriginConnection {
    private let socket: Socket
    private let state: OriginState
    private let reader: HTTPReader
    private let number: Int
    private var isReset = false

    init(socket: Socket, state: OriginState) {
        self.socket = socket
        self.state = state
        reader = HTTPReader(socket)
        number = state.beginConnection()
    }

    /// Serves requests until one side ends the connection.
    func serve() {
        // A peer that disconnects or sends nonsense ends the connection only.
        while (try? serveOne()) == true {}
        // A FIN before the RST would be an orderly end for the peer.
        if !isReset { socket.shutdown() }
    }

    /// Serves the next request. False if the connection has ended.
    private func serveOne() throws -> Bool {
        guard let (line, fields) = try reader.head() else { return false }
        let parts = line.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return false }
        let (index, resource, turn) = state.begin(String(parts[0]), String(parts[1]), fields, on: number, socket)
        defer { state.end(index) }
        let plan = Plan(turn)
        let method = String(parts[0])
        let hasBody = fields.isChunked || (fields["Content-Length"].map { $0 != "0" } ?? false)
        if hasBody || fields.contains("Content-Length") {
            guard try receiveBody(fields, plan, index) else { return false }
        }
        if let ending = plan.noAnswer { return end(ending) }
        if let gate = plan.gate, !gate.wait(socket) { return false }
        if let delay = plan.delayHead, socket.waitForHangUp(atMost: delay) { return false }
        for (status, fields) in plan.informational { try socket.send("HTTP/1.1 \(status) Info\r\n\(fields.lines)\r\n") }
        if let (bytes, ending) = plan.raw {
            try socket.send(bytes)
            state.update(index) { $0.bytesSent = bytes.count }
            return end(ending)
        }
        var answer = Answer(method: method, request: fields, resource: resource, plan: plan)
        if case .status(let status, let body) = resource?.uploadAnswer, method != "GET", method != "HEAD" {
            answer.replaceContent(status: status, body: body)
        } else if case .echo = resource?.uploadAnswer, method != "GET", method != "HEAD" {
            answer.replaceContent(status: 200, body: state.requests[index].body)
        }
        let isKept = try send(answer, plan, index)
        if plan.earlyAnswer { try socket.lingerUntilPeerCloses() }
        return isKept && !plan.earlyAnswer
    }

    /// Reads the request's body into the record. False if the plan cut it.
    private func receiveBody(_ fields: HTTPFields, _ plan: Plan, _ index: Int) throws -> Bool {
        if plan.earlyAnswer { return true }
        if let pause = plan.sip {
            socket.receiveLittle()
            while !socket.waitForHangUp(atMost: pause), !(try socket.receive(limit: 1)).isEmpty {}
            return false
        }
        if fields["Expect"]?.asciiLowercased == "100-continue" { try socket.send("HTTP/1.1 100 Continue\r\n\r\n") }
        let digest = Digest()
        let framing: HTTPReader.Framing =
            fields.isChunked ? .chunked : .length(fields["Content-Length"].flatMap { Int($0) } ?? 0)
        var received = 0
        do {
            try reader.body(framing) { piece in
                received += piece.count
                digest.update(piece)
                state.update(index) {
                    $0.bodyLength += piece.count
                    if $0.body.count < 1 << 20 { $0.body += piece.prefix(1 << 20 - $0.body.count) }
                }
                if let (limit, _) = plan.cutUpload, received >= limit { throw Cut() }
            }
        } catch is Cut {
            return end(plan.cutUpload?.ending ?? .finish)
        }
        let sha256 = Content.hex(digest.finish())
        state.update(index) { $0.bodySHA256 = sha256 }
        return true
    }

    private struct Cut: Error {}

    private func send(_ answer: Answer, _ plan: Plan, _ index: Int) throws -> Bool {
        if !answer.sendsBody { state.finish(index) }
        try socket.send(answer.head)
        guard answer.sendsBody else { return answer.keepsConnection }
        var position = answer.range.lowerBound
        var sent = 0
        while answer.isEndless || position < answer.range.upperBound {
            var size = plan.trickle?.size ?? answer.chunkSize ?? 1 << 16
            if !answer.isEndless { size = min(size, answer.range.upperBound - position) }
            for limit in [plan.cut?.after, plan.stall, plan.holdBody?.after] {
                if let limit, limit > sent { size = min(size, limit - sent) }
            }
            if let withheld = plan.withheld {
                while withheld().contains(position) {
                    if socket.waitForHangUp(atMost: .milliseconds(1)) { return false }
                }
                let start = withheld().lowerBound
                if start > position { size = min(size, start - position) }
            }
            if let cut = plan.cut, sent >= cut.after { return end(cut.ending) }
            if let stall = plan.stall, sent >= stall { return hang() }
            if let (after, gate) = plan.holdBody, sent >= after, !gate.wait(socket) { return false }
            let bytes = answer.bytes(position..<position + size)
            let isLast = !answer.isEndless && position + size == answer.range.upperBound
            if isLast { state.finish(index) }
            try socket.send(answer.chunkSize == nil ? bytes : Self.chunk(bytes))
            position += size
            sent += size
            state.update(index) { $0.bytesSent += bytes.count }
            if !isLast, let pause = plan.trickle?.pause, socket.waitForHangUp(atMost: pause) { return false }
        }
        if let cut = plan.cut { return end(cut.ending) }
        if plan.stall != nil { return hang() }
        if answer.chunkSize != nil { try socket.send("0\r\n\r\n") }
        return answer.keepsConnection
    }

    private static func chunk(_ bytes: [UInt8]) -> [UInt8] {
        Array((String(bytes.count, radix: 16) + "\r\n").utf8) + bytes + Array("\r\n".utf8)
    }

    private func end(_ ending: Misbehaviour.Ending) -> Bool {
        switch ending {
        case .finish: return false
        case .silence: return hang()
        case .reset:
            isReset = true
            socket.resetAtClose()
            return false
        }
    }

    /// Keeps the connection open without another byte until the peer or the origin ends it.
    private func hang() -> Bool {
        while !socket.waitForHangUp(atMost: .seconds(1)) {}
        return false
    }
}

/// The turn of one request, sorted by its concerns.
struct Plan: Sendable {
    var delayHead: Duration?
    var trickle: (size: Int, pause: Duration)?
    var cut: (after: Int, ending: Misbehaviour.Ending)?
    var cutUpload: (after: Int, ending: Misbehaviour.Ending)?
    var sip: Duration?
    var stall: Int?
    var noAnswer: Misbehaviour.Ending?
    var earlyAnswer = false
    var contentLength: [String]?
    var chunkSize: Int?
    var closeDelimited = false
    var endless = false
    var raw: (bytes: [UInt8], ending: Misbehaviour.Ending)?
    var status: (code: Int, fields: HTTPFields, body: [UInt8])?
    var demand: (authorization: String, challenge: String)?
    var informational: [(Int, HTTPFields)] = []
    var fields = HTTPFields()
    var partial: Misbehaviour.PartialLie?
    var gate: Gate?
    var holdBody: (after: Int, gate: Gate)?
    var withheld: (@Sendable () -> Range<Int>)?

    init(_ turn: [Misbehaviour]) {
        for misbehaviour in turn {
            switch misbehaviour {
            case .delayHead(let delay): delayHead = delay
            case .trickle(let size, let pause): trickle = (size, pause)
            case .cut(let after, let ending): cut = (after, ending)
            case .cutUpload(let after, let ending): cutUpload = (after, ending)
            case .stall(let after): stall = after
            case .noAnswer(let ending): noAnswer = ending
            case .earlyAnswer: earlyAnswer = true
            case .sip(let pause): sip = pause
            case .contentLength(let values): contentLength = values
            case .chunked(let size): chunkSize = size
            case .closeDelimited: closeDelimited = true
            case .endless: endless = true
            case .raw(let bytes, let ending): raw = (bytes, ending)
            case .status(let code, let pairs, let body):
                status = (code, HTTPFields(pairs: pairs), Array(body.utf8))
            case .demand(let authorization, let challenge): demand = (authorization, challenge)
            case .informational(let code, let pairs): informational.append((code, HTTPFields(pairs: pairs)))
            case .header(let name, let value): fields.append(name, value)
            case .partial(let lie): partial = lie
            case .become: break
            case .hold(let gate): self.gate = gate
            case .holdBody(let after, let gate): holdBody = (after, gate)
            case .leash(let limit): withheld = { limit()..<Int.max }
            case .withhold(let range): withheld = range
            }
        }
    }
}
