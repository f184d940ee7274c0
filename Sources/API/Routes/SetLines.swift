import Core
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

/// A version that is sent as lines of JSON: first its ``SetVersionHead``, then its files, which are added in groups as
/// they arrive.
struct SetLines {
    let call: Call
    let set: SetRecord

    private static let groupBytes = 4 << 20

    private struct Group {
        var files: [SetFile] = []
        /// The number of each file's line.
        var lines: [Int] = []
        var bytes = 0

        var isFull: Bool { files.count >= Call.filesAtOnce || bytes >= groupBytes }
    }

    func answer() async throws -> HTTPResponse {
        guard case .stream(let stream) = call.request.body else {
            throw Problem(.lengthRequired, "Send the lines as the body.")
        }
        var lines = Lines(stream, limit: call.server.settings.bodyLimit)
        do {
            guard let first = try await lines.next() else { throw Self.tooFew }
            let text = try bytes(of: first)
            let head = try first.naming { () throws(JSONError) in try SetVersionHead(parsing: text) }
            let draft = try await call.begin(SetVersionOrder(head, nil), in: head.session, of: set)
            do {
                let fingerprint = try await receive(&lines, of: head, into: draft)
                return try await call.finish(draft, fingerprint, of: set)
            } catch {
                await call.service.discard(draft)
                throw error
            }
        } catch {
            // A client that still sends does not read the response.
            while (try? await stream.next()) != nil {}
            throw error
        }
    }

    private static let tooFew = Problem(
        .invalidValue, "The first line is the version without its files; each following line is a file.")

    /// Adds the files of all further lines. The lines held count towards the memory for bodies.
    ///
    /// - Throws: The faults of all lines together.
    private func receive(
        _ lines: inout Lines, of head: SetVersionHead, into draft: SetDraft
    ) async throws -> SetFingerprint {
        var fingerprint = SetFingerprint(head)
        let share = call.server.bodies.share(of: call.caller.principal)
        var (group, count, faults) = (Group(), 0, [Fault]())
        while faults.count < Faults.maximumCount, let line = try await lines.next() {
            count += 1
            guard count <= SetVersionCreation.mostLines else {
                throw Problem(
                    .payloadTooLarge, "A version may have \(SetVersionCreation.mostLines.counted("file")).")
            }
            let text = try bytes(of: line)
            do {
                let (file, checked) = try line.naming { () throws(JSONError) in
                    let file = try SetVersionFile(parsing: text)
                    return (file, try SetFile(checking: file))
                }
                fingerprint.add(file)
                group.files.append(checked)
                group.lines.append(line.number)
                group.bytes += text.count
            } catch let error as JSONError {
                faults += error.faults
            }
            if group.isFull || !share.hold(lines.held + group.bytes) {
                if faults.isEmpty { try await add(group, to: draft) }
                group = Group()
                guard share.hold(lines.held) else { throw ServiceError.overloaded }
            }
        }
        guard faults.isEmpty else { throw JSONError.invalid(faults) }
        guard count > 0 else { throw Self.tooFew }
        try await add(group, to: draft)
        return fingerprint
    }

    private func bytes(of line: LineSplitter.Line) throws(Problem) -> [UInt8] {
        guard let bytes = line.bytes else {
            let limit = call.server.settings.bodyLimit
            throw Problem(.payloadTooLarge, line.named("A line may have \(limit.counted("byte"))."))
        }
        return bytes
    }

    private func add(_ group: Group, to draft: SetDraft) async throws {
        guard !group.files.isEmpty else { return }
        try await call.checkAdmission()
        do {
            try await call.service.add(group.files, to: draft)
        } catch {
            guard let index = Failure(error).orderIndex, group.lines.indices.contains(index) else { throw error }
            var problem = call.server.problem(for: error, of: call.request)
            problem.detail = "Line \(group.lines[index]): \(problem.detail)"
            throw problem
        }
    }
}

extension LineSplitter.Line {
    fileprivate func named(_ detail: String) -> String { "Line \(number): \(detail)" }

    /// Reads this line, which faults then name.
    ///
    /// - Throws: ``Problem`` for text that is no JSON; `JSONError` for faults of its members.
    fileprivate func naming<Result>(_ read: () throws(JSONError) -> Result) throws -> Result {
        do {
            return try read()
        } catch .malformed(let offset, let detail) {
            throw Problem(.malformedJSON, named("This is not JSON: at byte \(offset), \(detail)."))
        } catch .invalid(var faults) {
            for index in faults.indices { faults[index].detail = named(faults[index].detail) }
            throw JSONError.invalid(faults)
        }
    }
}

/// The lines of a body, one after the other.
private struct Lines {
    private let stream: RequestStream
    private var splitter: LineSplitter
    private var read: ArraySlice<LineSplitter.Line> = []
    private var isAtEnd = false

    init(_ stream: RequestStream, limit: Int) {
        self.stream = stream
        splitter = LineSplitter(limit: limit)
    }

    /// Bytes of a line that has not ended.
    var held: Int { splitter.held }

    mutating func next() async throws -> LineSplitter.Line? {
        while read.isEmpty, !isAtEnd {
            if let bytes = try await stream.next() {
                read = splitter.take(bytes)[...]
            } else {
                isAtEnd = true
                if let last = splitter.finish() { read = [last] }
            }
        }
        return read.popFirst()
    }
}
