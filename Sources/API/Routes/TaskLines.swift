import Base
import Core
import Files
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

/// Tasks as lines of JSON, any number of them: read as they arrive, committed in groups, each answered by a line of its
/// own.
struct TaskLines {
    let call: Call
    let session: SessionRecord

    private static let groupSize = 500
    private static let groupBytes = 4 << 20
    /// Milliseconds after which a group that is not full is committed.
    private static let groupAge: Int64 = 250
    /// After so many refused lines no more are read: further lines are likely to be refused too.
    private static let maximumRefused = 1000

    /// A line in flight: its order, or the reason why there is none.
    private struct Line {
        var number = 0
        var order: TaskOrder?
        var bodyPointer = "/body"
        /// Prepared once, however often its group is committed.
        var task: PreparedTask?
        var result: LineResult?
    }

    private struct Group {
        var lines: [Line] = []
        var bytes = 0
        /// Lines that were refused when they were read.
        var refused = 0
        var began: Int64 = 0

        mutating func append(_ line: Line, bytes: Int) {
            lines.append(line)
            self.bytes += bytes
            if line.result != nil { refused += 1 }
        }

        var isFull: Bool { lines.count >= groupSize || bytes >= groupBytes }
    }

    private struct Results {
        var response: SpooledResponse
        var refused = 0
        /// The number of the last line with a result.
        var last = 0

        mutating func append(_ result: LineResult, of number: Int) async throws {
            if result.problem != nil { refused += 1 }
            last = number
            var result = result
            result.line = Int64(number)
            try await response.append(result.jsonBytes + [UInt8(ascii: "\n")])
        }
    }

    func answer() async throws -> HTTPResponse {
        guard
            call.accepted == MediaTypes.lines
                || MediaTypes.choose([MediaTypes.lines], accept: call.request.headers.all("Accept")) != nil
        else { throw Problem(.notAcceptable, "The response to lines is application/x-ndjson.") }
        guard case .stream(let stream) = call.request.body else {
            throw Problem(.lengthRequired, "Send the lines as the body.")
        }
        var results = Results(response: SpooledResponse(call))
        if let rest = try await perform(stream, &results) {
            // A client that still sends does not read the response.
            while try await stream.next() != nil {}
            try await results.append(LineResult(problem: problem(for: rest)), of: results.last + 1)
        }
        return try await results.response.finish([("Content-Type", MediaTypes.lines)])
    }

    /// Creates the tasks of all lines. The lines held count towards the memory for bodies.
    ///
    /// - Returns: The reason why lines were left: too many were refused, or there is no memory for the next one.
    private func perform(_ stream: RequestStream, _ results: inout Results) async throws -> Problem? {
        let traceparent = call.traceparent
        var splitter = LineSplitter(limit: call.server.settings.bodyLimit)
        let share = call.server.bodies.share(of: call.caller.principal)
        var group = Group()
        func take(_ line: LineSplitter.Line, _ results: inout Results) async throws -> Bool {
            guard results.refused < Self.maximumRefused else { return false }
            if group.lines.isEmpty { group.began = call.service.clock.monotonic() }
            var read = read(line, traceparent)
            read.number = line.number
            group.append(read, bytes: line.bytes?.count ?? 0)
            let isEnough = results.refused + group.refused >= Self.maximumRefused
            if isEnough || group.isFull { try await commit(&group, &results) }
            return true
        }
        func next() async throws -> [UInt8]? {
            guard !group.lines.isEmpty else { return try await stream.next() }
            let age = call.service.clock.monotonic() - group.began
            return try await stream.next(within: .milliseconds(max(0, Self.groupAge - age)))
        }
        while let bytes = try await next() {
            for line in splitter.take(bytes) {
                guard try await take(line, &results) else { return Self.tooManyRefused(results.refused) }
            }
            if !share.hold(splitter.held + group.bytes) {
                try await commit(&group, &results)
                guard share.hold(splitter.held) else { return Self.noRoom }
            }
            if call.service.clock.monotonic() - group.began >= Self.groupAge { try await commit(&group, &results) }
        }
        if let line = splitter.finish() {
            guard try await take(line, &results) else { return Self.tooManyRefused(results.refused) }
        }
        try await commit(&group, &results)
        return nil
    }

    private static func tooManyRefused(_ count: Int) -> Problem {
        Problem(.invalidValue, "\(count) lines were refused: the rest was not read, and created no task.")
    }

    private static let noRoom = Problem(
        .rateLimited,
        "Too many large requests are being read: the rest was not read, and created no task; send it again soon.",
        status: 503)

    private func read(_ line: LineSplitter.Line, _ traceparent: String?) -> Line {
        guard let bytes = line.bytes else {
            let limit = call.server.settings.bodyLimit
            return Line(
                result: LineResult(problem: Problem(.payloadTooLarge, "A line may have \(limit.counted("byte")).")))
        }
        var clientTaskId: String?
        do {
            let creation = try TaskCreation(parsing: bytes)
            clientTaskId = creation.clientTaskId
            let order = try TaskOrder(checking: creation, traceparent: traceparent)
            return Line(order: order, bodyPointer: creation.bodyPointer)
        } catch {
            return Line(result: LineResult(problem: problem(for: error), clientTaskId: clientTaskId))
        }
    }

    /// Creates the tasks of a group. A refused line leaves the group, and the others are tried again. If a limit is
    /// reached, the lines before it are created first, so that the repetition costs little.
    private func commit(_ group: inout Group, _ results: inout Results) async throws {
        guard !group.lines.isEmpty else { return }
        try await call.checkAdmission()
        for index in group.lines.indices {
            guard let order = group.lines[index].order else { continue }
            do {
                group.lines[index].task = try await call.service.prepare(order, in: session)
            } catch {
                _ = refuse(error, [index], &group.lines)
            }
        }
        var count = Int.max
        while true {
            let open = Array(group.lines.indices.filter { group.lines[$0].result == nil }.prefix(count))
            let tasks = open.compactMap { group.lines[$0].task }
            guard !tasks.isEmpty else { break }
            count = .max
            do {
                let created = try await call.service.createTasks(tasks, in: session, recording: nil)
                for (index, item) in zip(open, created) {
                    group.lines[index].result = LineResult(
                        taskIdentifier: item.task.number, clientTaskId: item.task.specification.clientTaskId,
                        existing: item.isExisting)
                }
            } catch {
                let index = refuse(error, open, &group.lines)
                if let index, index > 0, Failure(error).isFull { count = index }
            }
        }
        for line in group.lines { if let result = line.result { try await results.append(result, of: line.number) } }
        group = Group()
    }

    /// Notes a failure at the line that it names, or at all lines if it names none.
    ///
    /// - Returns: The index of the named line among the open lines.
    private func refuse(_ error: any Error, _ open: [Int], _ group: inout [Line]) -> Int? {
        let named = Failure(error).orderIndex.flatMap { open.indices.contains($0) ? $0 : nil }
        for index in named.map({ [open[$0]] }) ?? open {
            let places = OrderPlaces(body: { [pointer = group[index].bodyPointer] _ in pointer })
            group[index].result = LineResult(
                problem: problem(for: error, places),
                clientTaskId: group[index].order?.specification.clientTaskId)
        }
        return named
    }

    private func problem(for error: any Error, _ places: OrderPlaces = OrderPlaces()) -> Problem {
        call.server.problem(for: error, of: call.request, places)
    }
}
