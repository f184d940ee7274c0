import CSimulation

/// The upload resources of origins that know the IETF draft for resumable uploads. They keep the bytes that arrived
/// before a connection broke.
final class UploadHost: @unchecked Sendable {
    private struct Upload {
        let resource: Resource
        let version: String
        let length: Int
        var bytes: [UInt8] = []
        var isGone = false

        var isComplete: Bool { bytes.count == length }

        var completeness: (String, String) {
            (name, (version == "3") == isComplete ? "?0" : "?1")
        }

        private var name: String { version == "3" ? "Upload-Incomplete" : "Upload-Complete" }

        init(_ resource: Resource, version: String, length: Int) {
            self.resource = resource
            self.version = version
            self.length = length
        }
    }

    private let simulator: Simulator
    private let network: Network
    private var uploads: [Upload] = []
    private let dice = Dice.extras
    private var trace: Trace { simulator.trace }

    init(_ simulator: Simulator, _ network: Network) {
        self.simulator = simulator
        self.network = network
    }

    private func has(_ fault: Plan.Fault, _ permille: Int) -> Bool {
        simulator.plan.has(fault) && !network.isCalm && dice.chance(permille)
    }

    // MARK: Heads

    /// Handles the head of a request to a resource: creates an upload resource if the origin knows the version.
    func begin(_ request: Request, at resource: Resource, on connection: Network.Connection) {
        let versions = ["8", "6", "3", nil]
        guard simulator.plan.has(.resumables), let version = request.header("upload-draft-interop-version"),
            versions[resource.number % versions.count] == version,
            let length = request.header("content-length").flatMap({ Int($0) }), length > 0
        else { return }
        let number = uploads.count
        uploads.append(Upload(resource, version: version, length: length))
        trace.met("upload resource \(version)")
        connection.upload = number
        if !has(.cuts, 100) {
            network.send(
                "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: http://o\(resource.origin).test/u/\(number)\r\n"
                    + "Upload-Draft-Interop-Version: \(version)\r\n\r\n", on: connection)
        }
        expect(length, from: 0, of: number, on: connection)
    }

    /// Handles the head of a request to an upload resource.
    func preview(_ request: Request, on connection: Network.Connection) {
        guard request.method == "PATCH", let number = number(request), let offset = offset(request),
            offset == uploads[number].bytes.count, !uploads[number].isGone
        else { return }
        connection.upload = number
        expect(uploads[number].length - offset, from: offset, of: number, on: connection)
    }

    /// Keeps the bytes of a request whose connection breaks, perhaps after some of them.
    private func expect(_ count: Int, from offset: Int, of number: Int, on connection: Network.Connection) {
        if !network.isCalm, !simulator.plan.isCalm, dice.chance(400) { connection.cut = dice.below(count) }
        connection.keep = { [self] bytes in
            guard uploads[number].bytes.count == offset else { return }
            uploads[number].bytes += bytes.prefix(uploads[number].length - offset)
            trace.note("upload \(number) has \(uploads[number].bytes.count) of \(uploads[number].length)")
            trace.met("upload interrupted")
            finish(number)
        }
    }

    /// The target processes an upload once all of its bytes have arrived, whether or not the connection lives.
    private func finish(_ number: Int) {
        let upload = uploads[number]
        if upload.isComplete { upload.resource.received.append(upload.bytes) }
    }

    // MARK: Requests

    /// Handles the complete body of a request that created an upload resource.
    ///
    /// - Returns: The fields of the target's response.
    func completed(_ request: Request, on connection: Network.Connection) -> [(String, String)] {
        guard let number = connection.upload else { return [] }
        connection.upload = nil
        uploads[number].bytes = request.body
        return [uploads[number].completeness, ("Upload-Draft-Interop-Version", uploads[number].version)]
    }

    private func number(_ request: Request) -> Int? {
        let parts = request.target.split(separator: "/")
        guard parts.count == 2, parts[0] == "u" else { return nil }
        return Int(parts[1]).flatMap { uploads.indices.contains($0) ? $0 : nil }
    }

    private func offset(_ request: Request) -> Int? { request.header("upload-offset").flatMap { Int($0) } }

    func owns(_ request: Request) -> Bool { request.target.hasPrefix("/u/") }

    func serve(_ request: Request, _ connection: Network.Connection) {
        connection.upload = nil
        simulator.after(dice.between(0.2, 30)) { [self] in respond(request, connection) }
    }

    private func respond(_ request: Request, _ connection: Network.Connection) {
        guard connection.isOpen, let number = number(request) else { return }
        if has(.statuses, 30) { uploads[number].isGone = true }
        guard !uploads[number].isGone else { return answer(404, [], connection) }
        switch request.method {
        case "HEAD": break
        case "DELETE": uploads[number].isGone = true
        default:
            guard offset(request) == uploads[number].bytes.count, !uploads[number].isComplete else {
                trace.met("upload at another offset")
                return answer(409, state(number), connection)
            }
            uploads[number].bytes += request.body
            guard uploads[number].isComplete else {
                return trace.fail("An append of \(request.body.count) bytes does not complete the upload \(number).")
            }
            trace.met("upload resumed")
            finish(number)
        }
        if has(.resets, 100) { return network.hangUp(connection, resets: true) }
        if has(.stalls, 50) { return }
        if has(.statuses, 100) { return answer(503, [], connection) }
        answer(request.method == "PATCH" ? 201 : 204, state(number), connection)
    }

    private func state(_ number: Int) -> [(String, String)] {
        let upload = uploads[number]
        return [
            ("Upload-Offset", "\(upload.bytes.count)"), upload.completeness, ("Upload-Length", "\(upload.length)"),
            ("Upload-Draft-Interop-Version", upload.version),
        ]
    }

    private func answer(_ status: Int, _ fields: [(String, String)], _ connection: Network.Connection) {
        trace.note("upload responds \(status) \(fields.first?.1 ?? "")")
        let lines = fields.map { "\($0): \($1)\r\n" }.joined()
        network.send(
            "HTTP/1.1 \(status) Status\r\n\(lines)\(status == 204 ? "" : "Content-Length: 0\r\n")\r\n", on: connection)
        network.finish(connection, closes: false)
    }
}
