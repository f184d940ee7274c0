import CSimulation
import Core

/// The receivers of webhooks: received webhooks, and the misbehaviour of each.
final class Receiver: @unchecked Sendable {
    private let simulator: Simulator
    private let network: Network
    private let dice = Dice.network
    /// Launches by id, with the body that all attempts must have.
    private(set) var launches: [String: [UInt8]] = [:]
    /// Launches that an app has not handled yet, in order of arrival.
    private var unhandled: [String] = []

    init(_ simulator: Simulator, _ network: Network) {
        self.simulator = simulator
        self.network = network
    }

    /// Acts on a webhook before its response. Returns whether the response waits for that.
    var onWebhook: () -> Bool = { false }

    func take() -> String? { unhandled.isEmpty ? nil : unhandled.removeFirst() }

    func serve(_ request: Request, _ connection: Network.Connection) {
        let trace = simulator.trace
        guard let id = request.header("webhook-id"), request.header("webhook-signature")?.hasPrefix("v1,") == true
        else {
            return trace.fail("A webhook came without its id or signature.")
        }
        trace.note("webhook \(id)")
        if let body = launches[id], body != request.body {
            trace.fail("The body of the launch \(id) changed between attempts.")
        }
        launches[id] = request.body
        note(String(decoding: request.body, as: UTF8.self))
        let isBad = simulator.plan.has(.receivers) && !network.isCalm
        let least = onWebhook() ? 1000 : 0.5
        simulator.after(dice.between(least, isBad && dice.chance(200) ? 20_000 : least + 40)) { [self] in
            if isBad, dice.chance(400) { return misbehave(connection) }
            if !unhandled.contains(id) { unhandled.append(id) }
            answer("200 OK", dice.chance(200) ? "{\"completed\": true}" : "", connection)
        }
    }

    /// The last event of each session's launches, which their completion acknowledges.
    private var lastSeqs: [String: Int64] = [:]

    func lastSeq(of session: String) -> Int64 { lastSeqs[session, default: 0] }

    private func note(_ body: String) {
        func value(_ name: String) -> Substring? {
            guard let start = body.firstRange(of: "\"\(name)\":")?.upperBound else { return nil }
            return body[start...].drop { $0 == " " || $0 == "\"" }.prefix { $0.isNumber || $0.isLetter }
        }
        guard let session = value("sessionIdentifier").map(String.init),
            let seq = value("lastSeq").flatMap({ Int64($0) })
        else { return }
        lastSeqs[session] = max(lastSeqs[session, default: 0], seq)
    }

    private func misbehave(_ connection: Network.Connection) {
        simulator.trace.met("receiver misbehaves")
        switch dice.below(5) {
        case 0: answer("500 No", "no", connection)
        case 1: answer("503 No\r\nRetry-After: 3", "", connection)
        case 2: answer("302 No\r\nLocation: http://h2.test/", "", connection)
        case 3: network.hangUp(connection, resets: true)
        default: break
        }
    }

    private func answer(_ status: String, _ body: String, _ connection: Network.Connection) {
        network.send("HTTP/1.1 \(status)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)", on: connection)
        network.finish(connection, closes: false)
    }
}
