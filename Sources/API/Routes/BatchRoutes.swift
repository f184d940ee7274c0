import Core
import HTTPServer
import Service
import Wire
import WireMapping

extension APIServer {
    /// Many tasks in one commit.
    var batchRoutes: [Route] {
        [
            route(
                "POST", "/v1/sessions/{identifier}/tasks/batch", .write, query: ["return"], body: .batch,
                replay: { try await $0.repeatedBatch($1) }
            ) {
                try await $0.createBatch()
            }
        ]
    }
}

extension Call {
    fileprivate func createBatch() async throws -> HTTPResponse {
        let isMinimal = try isMinimal()
        let session = try await session()
        let creations = try read(BatchCreation.self).tasks
        let traceparent = traceparent
        let orders = try creations.checked { index, creation throws(JSONError) in
            try TaskOrder(checking: creation, at: "/tasks/\(index)", traceparent: traceparent)
        }
        let places = OrderPlaces(
            order: { "/tasks/\($0)" },
            body: { "/tasks/\($0)" + (creations.indices.contains($0) ? creations[$0].bodyPointer : "/body") })
        do {
            let created = try await service.createTasks(
                orders, in: session,
                recording: idempotency?.recording { KeptBatch(session: session.id, $0).response })
            return batch(created, in: session, isMinimal: isMinimal)
        } catch {
            throw server.problem(for: error, of: request, places)
        }
    }

    /// Repeats the response: the same tasks, in their current state.
    fileprivate func repeatedBatch(_ answer: StoredAnswer) async throws -> HTTPResponse {
        let isMinimal = try isMinimal()
        let session = try await session()
        let kept = try KeptBatch(parsing: answer.body, .tolerant)
        guard kept.session == session.id else {
            throw Problem(.notFound, "The session of the first request was deleted, and its tasks with it.")
        }
        return batch(try await tasks(of: kept), in: session, isMinimal: isMinimal)
    }

    private func isMinimal() throws -> Bool { try queryWord("return", [("minimal", true)]) ?? false }

    private func batch(_ tasks: [CreatedTask], in session: SessionRecord, isMinimal: Bool) -> HTTPResponse {
        let new = tasks.lazy.filter { !$0.isExisting }.map(\.task.number)
        let (first, last) = (new.min(), new.max())
        var writer = JSONWriter(capacity: isMinimal ? 128 : 1200 * tasks.count)
        writer.object { writer in
            writer.member("created", tasks.count { !$0.isExisting })
            writer.member("firstTaskIdentifier", first)
            writer.member("lastTaskIdentifier", last)
            guard !isMinimal else { return }
            writer.array("items") { writer in
                for item in tasks {
                    writer.value(service.wireTask(item.task, in: session, isExisting: item.isExisting))
                }
            }
        }
        var headers = [("Content-Type", MediaTypes.json)]
        if first != nil { headers.append(("Location", "/v1/sessions/\(session.identifier)/tasks")) }
        return HTTPResponse(status: 201, headers: headers, body: .bytes(writer.bytes))
    }

    /// Reads the tasks of a batch, runs of consecutive numbers together.
    private func tasks(of kept: KeptBatch) async throws -> [CreatedTask] {
        var found: [Int64: TaskRecord] = [:]
        let numbers = Set(kept.tasks.map(\.number)).sorted()
        var index = 0
        while index < numbers.count {
            let page = try await service.tasks(
                in: kept.session, TaskFilter(), after: numbers[index] - 1, limit: min(1000, numbers.count - index))
            for task in page { found[task.number] = task }
            guard let last = page.last?.number else { break }
            index = numbers[index...].firstIndex { $0 > last } ?? numbers.count
        }
        return kept.tasks.compactMap { item in
            found[item.number].map { CreatedTask(task: $0, isExisting: item.isExisting) }
        }
    }
}

/// The record of a batch for its `Idempotency-Key`: the tasks' numbers, from which the response can be repeated.
struct KeptBatch: JSONReadable {
    let session: SessionID
    let tasks: [(number: Int64, isExisting: Bool)]

    init(session: SessionID, _ created: [CreatedTask]) {
        self.session = session
        tasks = created.map { ($0.task.number, $0.isExisting) }
    }

    init(reading reader: inout ObjectReader) {
        session = SessionID(reader.required("session", 0))
        let existing = Set(reader.required("existing", [Int64]()))
        tasks = reader.required("tasks", [Int64]()).enumerated().map { index, number in
            (number, existing.contains(Int64(index)))
        }
    }

    var response: HTTPResponse {
        var writer = JSONWriter(capacity: 64 + 8 * tasks.count)
        writer.object { writer in
            writer.member("session", session.rawValue)
            writer.member("existing", tasks.indices.filter { tasks[$0].isExisting })
            writer.member("tasks", tasks.map(\.number))
        }
        return HTTPResponse(status: 201, body: .bytes(writer.bytes))
    }
}
