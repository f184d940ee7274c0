import CSimulation
import Glibc

/// A request, as read by an origin or a receiver.
struct Request {
    var method: String
    var target: String
    var headers: [(name: String, value: String)]
    var body: [UInt8] = []

    func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// The hosts that the program can reach, and their connections.
final class Network: @unchecked Sendable {
    /// A connection from the program.
    final class Connection {
        fileprivate var raw: csim_connection
        var machine: Int32 { raw.machine }
        fileprivate(set) var isOpen = true
        let address: UInt32
        fileprivate var received: [UInt8] = []
        fileprivate var unsent: [UInt8] = []
        fileprivate var isAnswering = false
        fileprivate var hasContinued = false
        /// The server's state of the connection.
        var requests = 0
        /// The number of the upload that the current request belongs to.
        var upload: Int?
        /// The bytes of the current request's body soon after which the connection breaks.
        var cut: Int?
        /// Receives the beginning of a body whose connection breaks.
        var keep: (([UInt8]) -> Void)?

        fileprivate init(_ raw: csim_connection) {
            self.raw = raw
            address = raw.address
        }
    }

    private let simulator: Simulator
    private var connections: [Connection] = []
    /// The number of reads and writes of the hosts.
    private var seen: UInt64 = 0
    /// Responds to a request.
    var serve: (Request, Connection) -> Void = { _, _ in }
    /// Reads the head of a request before its body.
    var preview: (Request, Connection) -> Void = { _, _ in }
    var isCalm = false

    private var plan: Plan { simulator.plan }
    private let dice = Dice.network

    init(_ simulator: Simulator) {
        self.simulator = simulator
        csim_set_resolver { name, address in
            guard let name, let address else { return EAI_FAIL }
            return Network.resolve(String(cString: name), address)
        }
    }

    private func has(_ fault: Plan.Fault) -> Bool { plan.has(fault) && !isCalm }

    // MARK: Names

    /// Whether lookups fail now, in a place that a C function can read.
    private final class Names: @unchecked Sendable { var fail = false }
    private static let names = Names()

    func setNamesFail(_ fail: Bool) { Self.names.fail = fail }

    private static func resolve(_ name: String, _ address: UnsafeMutablePointer<UInt32>) -> Int32 {
        guard name.hasSuffix(".test"), let number = UInt32(name.dropFirst().dropLast(5)) else { return EAI_NONAME }
        if names.fail, Dice.network.chance(300) { return EAI_AGAIN }
        // Receivers are hNUMBER.test, stores of objects bNUMBER.test, all others origins.
        address.pointee = 0x0A00_0000 + (name.hasPrefix("h") ? 0x100 : name.hasPrefix("b") ? 0x200 : 0) + number
        return 0
    }

    // MARK: Connections

    /// Moves bytes. Called after each step of the simulation.
    func attend() {
        guard csim_network_activity() != seen else { return }
        seen = csim_network_activity()
        var raw = csim_connection()
        while csim_next_connection(&raw) != 0 { open(raw) }
        for connection in connections where connection.isOpen { move(connection) }
        connections.removeAll { !$0.isOpen }
    }

    private func open(_ raw: csim_connection) {
        let connection = Connection(raw)
        let delay = dice.between(0.1, has(.slowness) ? 400 : 30)
        if has(.refusals), dice.chance(150) {
            simulator.trace.met("connection refused")
            return simulator.after(delay) { [self] in
                if !wasDropped(raw) {
                    csim_refuse(&connection.raw, dice.pick([ECONNREFUSED, EHOSTUNREACH, ETIMEDOUT]))
                }
            }
        }
        if has(.hangs), dice.chance(40) { return simulator.trace.met("connection hangs") }
        simulator.after(delay) { [self] in
            guard !wasDropped(raw) else { return }
            csim_accept(&connection.raw)
            connections.append(connection)
        }
    }

    /// Whether the program of the connection has crashed, and its descriptors are closed.
    private func wasDropped(_ raw: csim_connection) -> Bool { raw.generation != csim_generation(raw.machine) }

    private func move(_ connection: Connection) {
        if !connection.unsent.isEmpty {
            let count = connection.unsent.withUnsafeBytes {
                csim_send(connection.raw.peer, $0.baseAddress, min($0.count, 16 << 10))
            }
            if count < 0 { return close(connection) }
            connection.unsent.removeFirst(count)
        }
        let wasEmpty = connection.received.isEmpty
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        let count = csim_receive(connection.raw.peer, &buffer, buffer.count)
        if count < 0 { return close(connection) }
        guard count > 0 else { return }
        if wasEmpty { connection.hasContinued = false }
        connection.received += buffer[..<count]
        read(connection)
    }

    /// Whether all bytes of a response are sent.
    func isSent(_ connection: Connection) -> Bool { connection.unsent.isEmpty || !connection.isOpen }

    private func read(_ connection: Connection) {
        guard !connection.isAnswering, let end = headEnd(connection.received) else { return }
        let lines = String(decoding: connection.received[..<end], as: UTF8.self).split(separator: "\r\n")
        let first = lines[0].split(separator: " ")
        guard first.count == 3 else { return close(connection) }
        var request = Request(
            method: String(first[0]), target: String(first[1]),
            headers: lines.dropFirst().compactMap { line in
                guard let colon = line.firstIndex(of: ":") else { return nil }
                return (line[..<colon].lowercased(), line[line.index(after: colon)...].drop { $0 == " " }.description)
            })
        if !connection.hasContinued {
            connection.hasContinued = true
            preview(request, connection)
            if request.header("expect") != nil { send("HTTP/1.1 100 Continue\r\n\r\n", on: connection) }
        }
        let bodyStart = end + 4
        if request.header("transfer-encoding") != nil {
            guard let (body, next) = chunks(connection.received, from: bodyStart) else { return }
            request.body = body
            connection.received.removeFirst(next)
        } else {
            let length = request.header("content-length").flatMap { Int($0) } ?? 0
            if let cut = connection.cut, connection.received.count >= bodyStart + cut {
                connection.isAnswering = true
                // An informational response is sent before.
                return simulator.after(dice.between(1, 60)) { [self] in close(connection, resets: true) }
            }
            guard connection.received.count >= bodyStart + length else { return }
            (connection.cut, connection.keep) = (nil, nil)
            request.body = Array(connection.received[bodyStart..<(bodyStart + length)])
            connection.received.removeFirst(bodyStart + length)
        }
        connection.isAnswering = true
        connection.requests += 1
        serve(request, connection)
    }

    private func headEnd(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        for index in 0...(bytes.count - 4)
        where bytes[index] == 13 && bytes[index + 1] == 10 && bytes[index + 2] == 13 && bytes[index + 3] == 10 {
            return index
        }
        return nil
    }

    private func chunks(_ bytes: [UInt8], from start: Int) -> ([UInt8], Int)? {
        var (body, position) = ([UInt8](), start)
        while true {
            guard let end = bytes[position...].firstIndex(of: 10),
                let count = Int(String(decoding: bytes[position..<(end - 1)], as: UTF8.self), radix: 16),
                bytes.count >= end + 1 + count + 2
            else { return nil }
            body += bytes[(end + 1)..<(end + 1 + count)]
            position = end + 1 + count + 2
            if count == 0 { return (body, position) }
        }
    }

    func send(_ text: String, on connection: Connection) { send(Array(text.utf8), on: connection) }

    func send(_ bytes: [UInt8], on connection: Connection) {
        guard connection.isOpen else { return }
        connection.unsent += bytes
        seen = .max
    }

    /// The response is complete, and the next request may follow.
    func finish(_ connection: Connection, closes: Bool) {
        guard connection.isOpen else { return }
        if closes { return hangUp(connection) }
        connection.isAnswering = false
        read(connection)
    }

    /// Closes a connection after all bytes are sent; a reset does not wait for them.
    func hangUp(_ connection: Connection, resets: Bool = false) {
        guard connection.isOpen else { return }
        if !resets, !connection.unsent.isEmpty {
            return simulator.after(20) { [self] in hangUp(connection) }
        }
        close(connection, resets: resets)
    }

    private func close(_ connection: Connection, resets: Bool = false) {
        guard connection.isOpen else { return }
        connection.isOpen = false
        keepBody(connection)
        csim_hang_up(&connection.raw, resets ? 1 : 0)
    }

    private func keepBody(_ connection: Connection) {
        guard let keep = connection.keep, let end = headEnd(connection.received) else { return }
        connection.keep = nil
        let body = connection.received[(end + 4)...]
        keep(Array(connection.cut.map { body.prefix($0) } ?? body))
    }

    /// The program of a machine has crashed, and its descriptors are closed.
    func drop(_ machine: Int32) {
        for connection in connections where connection.raw.machine == machine {
            connection.isOpen = false
            keepBody(connection)
        }
        connections.removeAll { !$0.isOpen }
    }
}
