import Base
import Core
import HTTPServer
import Service
import Wire

/// Tasks that come as lines of JSON, any number of them: read as they arrive, committed in groups, each answered by a
/// line of its own.
struct TaskLines {
    let call: Call
    let session: SessionRecord

    /// Tasks in one commit.
    private static let groupSize = 500
    /// A group that is not full is committed when it has waited this long, in milliseconds.
    private static let groupAge: Int64 = 250

    /// A line on its way: the order made of it, or why there is none.
    private struct Line {
        var order: TaskOrder?
        var bodyPointer = "/body"
        var result: LineResult?
    }

    func answer() async throws -> HTTPResponse {
        guard
            call.accepted == MediaTypes.lines
                || MediaTypes.choose(
                    [MediaTypes.lines], accept: call.request.headers.all("Accept")) != nil
        else { throw Problem(.notAcceptable, "The answer to lines is application/x-ndjson.") }
        guard session.state == .active else { throw DomainError.sessionInvalidated }
        guard case .stream(let stream) = call.request.body else {
            throw Problem(.lengthRequired, "Send the lines as the body.")
        }
        let traceparent = call.traceparent
        var splitter = LineSplitter(limit: call.server.settings.bodyLimit)
        var results = JSONLines()
        var group: [Line] = []
        var groupBegan = call.service.clock.monotonic()
        while let bytes = try await stream.next() {
            for line in splitter.take(bytes) {
                if group.isEmpty { groupBegan = call.service.clock.monotonic() }
                group.append(read(line, traceparent))
                if group.count >= Self.groupSize { try await commit(&group, &results) }
            }
            if call.service.clock.monotonic() - groupBegan >= Self.groupAge { try await commit(&group, &results) }
        }
        if let line = splitter.finish() { group.append(read(line, traceparent)) }
        try await commit(&group, &results)
        return HTTPResponse(status: 200, headers: [("Content-Type", MediaTypes.lines)], body: .bytes(results.bytes))
    }

    private func read(_ line: LineSplitter.Line, _ traceparent: String?) -> Line {
        guard case .bytes(let bytes) = line else {
            let limit = call.server.settings.bodyLimit
            return Line(result: LineResult(problem: Problem(.payloadTooLarge, "A line may have \(limit) bytes.")))
        }
        do throws(JSONError) {
            let creation = try TaskCreation(parsing: bytes)
            do throws(JSONError) {
                return Line(
                    order: try TaskOrder(creation, traceparent: traceparent), bodyPointer: creation.bodyPointer)
            } catch {
                return Line(result: LineResult(problem: told(error), clientTaskId: creation.clientTaskId))
            }
        } catch {
            return Line(result: LineResult(problem: told(error)))
        }
    }

    /// Creates the tasks of a group; a line that is refused leaves the group, and the others are tried again. Where a
    /// limit ends the room, those before are created first, so that trying the others costs little.
    private func commit(_ group: inout [Line], _ results: inout JSONLines) async throws {
        guard !group.isEmpty else { return }
        var count = Int.max
        while true {
            let open = Array(group.indices.filter { group[$0].result == nil }.prefix(count))
            let orders = open.compactMap { group[$0].order }
            guard !orders.isEmpty else { break }
            count = .max
            do {
                let created = try await call.service.createTasks(orders, in: session, recording: nil)
                for (index, item) in zip(open, created) {
                    group[index].result = LineResult(
                        taskIdentifier: item.task.number, clientTaskId: item.task.specification.clientTaskId,
                        existing: item.isExisting)
                }
            } catch {
                let index = refuse(error, open, &group)
                if let index, index > 0, Failure(error).isFull { count = index }
            }
        }
        for line in group { if let result = line.result { results.append(result) } }
        group = []
    }

    /// Notes a failure at the line that it names, or at all lines where it names none.
    ///
    /// - Returns: Which of the open lines it named.
    private func refuse(_ error: any Error, _ open: [Int], _ group: inout [Line]) -> Int? {
        let named = Failure(error).orderIndex.flatMap { open.indices.contains($0) ? $0 : nil }
        for index in named.map({ [open[$0]] }) ?? open {
            let places = OrderPlaces(body: { [pointer = group[index].bodyPointer] _ in pointer })
            group[index].result = LineResult(
                problem: call.server.problem(for: error, of: call.request, places),
                clientTaskId: group[index].order?.specification.clientTaskId)
        }
        return named
    }

    private func told(_ error: JSONError) -> Problem { Problem(error, instance: call.request.path) }
}

/// JSON text, one value a line.
private struct JSONLines {
    private(set) var bytes: [UInt8] = []

    mutating func append(_ value: some JSONWritable) {
        bytes += value.jsonBytes
        bytes.append(UInt8(ascii: "\n"))
    }
}

/// Cuts bytes into lines as they come. Empty lines do not count; a line above the limit is skipped and told.
struct LineSplitter {
    enum Line {
        case bytes([UInt8])
        case tooLong
    }

    private let limit: Int
    private var partial: [UInt8] = []
    private var isTooLong = false

    init(limit: Int) { self.limit = limit }

    mutating func take(_ bytes: [UInt8]) -> [Line] {
        var lines: [Line] = []
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            keep(rest[..<end])
            if let line = finish() { lines.append(line) }
            rest = rest[(end + 1)...]
        }
        keep(rest)
        return lines
    }

    /// The line that the end of the body ends.
    mutating func finish() -> Line? {
        defer {
            partial = []
            isTooLong = false
        }
        if isTooLong { return .tooLong }
        let isEmpty = partial.allSatisfy { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return isEmpty ? nil : .bytes(partial)
    }

    private mutating func keep(_ bytes: ArraySlice<UInt8>) {
        guard !isTooLong, partial.count + bytes.count <= limit else {
            isTooLong = true
            partial = []
            return
        }
        partial += bytes
    }
}
