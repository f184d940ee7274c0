import Base
import Core
import Files
import Formats
import HTTPServer
import Service
import Transfers
import Wire
import WireMapping

/// The body of a response with bytes of an unfinished download. It follows the durable bytes, and ends with an error if
/// the task does not succeed with the version of these bytes.
struct ArrivalStream: Sendable {
    let call: Call
    let reader: ArrivalReader
    let bytes: ArrivalReader.Place
    let version: Int64
    let selection: ArrivingAnswer.Selection
    /// Counts the stream while it is open.
    let place: Hold

    /// The bytes per read, which is the memory for a client that does not read: fewer if there is not enough memory. A read
    /// of a bucket is a request.
    private var pieceLengths: [Int64] { if case .objects = bytes { [1 << 20, 64 << 10] } else { [64 << 10] } }
    /// Milliseconds after which a stream without memory tries again.
    private static let pause: Int64 = 250

    /// 200 or 206.
    func response(_ fields: [(String, String)]) -> HTTPResponse {
        var response = HTTPResponse(status: 200, headers: fields, body: .stream { try await run($0) })
        if let end = selection.end {
            response.body = .sized(length: end - selection.first) { try await run($0) }
        } else if wantsDigest {
            response.headers.append(("Trailer", "Repr-Digest"))
        }
        if let range = selection.contentRange {
            response.status = 206
            response.headers.append(("Content-Range", range))
        }
        return response
    }

    /// False if the client refuses the digest (RFC 9530, section 4).
    private var wantsDigest: Bool {
        !call.request.headers.all("Want-Repr-Digest").flatMap { $0.split(separator: ",") }
            .contains { $0.trimmed == "sha-256=0" }
    }

    private func run(_ writer: ResponseWriter) async throws {
        let share = call.server.arriving.share(of: call.caller.principal)
        let end = selection.end
        var position = selection.first
        var whole: (length: Int64, digest: Core.ContentDigest?)?
        while position < end ?? whole?.length ?? .max {
            guard !call.request.clientGone.isGone, !call.service.isDraining else { throw ArrivalReader.Cut() }
            let readable = try whole?.length ?? reader.end(from: position, of: version)
            if readable <= position {
                // The content is shorter than the range that was promised.
                if whole != nil { throw ArrivalReader.Cut() }
                if await reader.wait(for: position) { whole = try await reader.ending(of: version) }
                try await call.checkAdmission()
            } else if let pieceLength = pieceLengths.first(where: { share.hold(Int($0)) }) {
                let last = min(readable, end ?? .max, position + pieceLength)
                let piece = try await reader.read(bytes, position..<last, of: version)
                if !piece.isEmpty { try await writer.write(piece) }
                position += Int64(piece.count)
                _ = share.hold(0)  // The client has taken the piece.
            } else {
                try await Task.sleep(for: .milliseconds(Self.pause))
            }
        }
        if end == nil, wantsDigest, let field = whole?.digest?.field { writer.addTrailer("Repr-Digest", field) }
    }
}

extension Call {
    /// Responds with bytes of an unfinished download as soon as the first byte of the response is readable.
    ///
    /// - Returns: `nil` if the task is completed meanwhile, with its record in `task`.
    func arriving(_ task: inout TaskRecord) async throws -> HTTPResponse? {
        let deadline = service.clock.monotonic() + preferredWait.milliseconds
        let place = try heldPlace()
        let reader = service.arrivalReader(of: task)
        request.clientGone.onGone { reader.wake() }
        while task.state != .completed {
            var wanted: Int64?
            if let content = reader.content(of: task) {
                let tag = tag(ofBytes: content.version, of: task)
                let fields = ContentFields.fields(reader.response, tag: tag)
                if let response = try conditionalResponse(tag, fields) { return response }
                let answer = ArrivingAnswer.decide(
                    content, range: requestedRange, ifRange: request.headers["If-Range"], entityTag: tag)
                switch answer {
                case .wait(let offset): wanted = offset
                case .unsatisfiable(let total): return unsatisfiable(total)
                case .send(let selection):
                    if let bytes = try await reader.open(content) {
                        let stream = ArrivalStream(
                            call: self, reader: reader, bytes: bytes, version: content.version, selection: selection,
                            place: place)
                        return stream.response(fields)
                    }
                }
            }
            guard !service.isDraining, request.clientGone.reason != .serverStops else {
                throw ServiceError.shuttingDown
            }
            guard service.clock.monotonic() < deadline, !request.clientGone.isGone else { throw Self.notArrived }
            _ = await reader.wait(for: wanted, until: deadline)
            try await checkAdmission()
            task = try await service.task(task.number, in: task.session)
        }
        return nil
    }

    private static let notArrived = Problem(
        .contentNotReady,
        "The first byte is not readable yet. Before the end bytes are readable beyond 64 KiB, not if they are for a bucket "
            + "of the app, and those for a destination on a disk at the node of the transfer only.", status: 503)

    /// The client's maximum time to the head of the response: `wait` of `Prefer` (RFC 7240 section 4.3).
    private var preferredWait: Duration {
        let preferences = request.headers.all("Prefer").flatMap { $0.split(separator: ",") }.map { $0.trimmed }
        let waits = preferences.compactMap { preference -> Int64? in
            let parts = (preference.split(separator: ";").first ?? "").split(separator: "=").map { $0.trimmed }
            guard parts.count == 2, parts[0].asciiLowercased == "wait" else { return nil }
            return Int64(digits: parts[1], atMost: 9)
        }
        return .seconds(min(waits.first ?? 30, 60))
    }
}
