import Core
import HTTPServer
import Mapping
import Service
import Wire

/// Many tasks in one commit.
struct BatchRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route(
                "POST", "/v1/sessions/{identifier}/tasks/batch", .write, query: ["return"], body: .batch,
                replay: replay, create)
        ]
    }

    @Sendable private func create(_ call: Call) async throws -> HTTPResponse {
        let isMinimal = try call.queryWord("return", [("minimal", true)]) ?? false
        let session = try await call.session()
        let creations = try call.read(BatchCreation.self).tasks
        let traceparent = call.traceparent
        var orders: [TaskOrder] = []
        orders.reserveCapacity(creations.count)
        var faults: [Fault] = []
        for (index, creation) in creations.enumerated() {
            do {
                orders.append(try TaskOrder(checking: creation, at: "/tasks/\(index)", traceparent: traceparent))
            } catch {
                faults += error.faults
                if faults.count >= Faults.maximumCount { break }
            }
        }
        guard faults.isEmpty else { throw JSONError.invalid(faults) }
        let places = OrderPlaces(
            order: { "/tasks/\($0)" },
            body: { "/tasks/\($0)" + (creations.indices.contains($0) ? creations[$0].bodyPointer : "/body") })
        do {
            let created = try await call.service.createTasks(
                orders, in: session,
                recording: call.recording { created in
                    KeptBatch(session: session.id, created).response
                })
            return answer(call, created, in: session, isMinimal: isMinimal)
        } catch {
            throw server.problem(for: error, of: call.request, places)
        }
    }

    private func answer(
        _ call: Call, _ tasks: [CreatedTask], in session: SessionRecord, isMinimal: Bool
    ) -> HTTPResponse {
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
                    writer.value(call.service.wireTask(item.task, in: session, isExisting: item.isExisting))
                }
            }
        }
        let query = first.map { _ in "/v1/sessions/\(session.identifier)/tasks" }
        return HTTPResponse(
            status: 201,
            headers: [("Content-Type", MediaTypes.json)] + (query.map { [("Location", $0)] } ?? []),
            body: .bytes(writer.bytes))
    }

    /// Answers again: the same tasks, as they are now.
    @Sendable private func replay(_ call: Call, _ answer: StoredAnswer) async throws -> HTTPResponse {
        let isMinimal = try call.queryWord("return", [("minimal", true)]) ?? false
        let session = try await call.session()
        let kept = try KeptBatch(parsing: answer.body, .tolerant)
        guard kept.session == session.id else { throw DomainError.notFound }
        return self.answer(call, try await tasks(of: kept, call.service), in: session, isMinimal: isMinimal)
    }

    /// Reads the tasks of a batch, runs of consecutive numbers together.
    private func tasks(of kept: KeptBatch, _ service: Service) async throws -> [CreatedTask] {
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

/// What is kept of a batch for its `Idempotency-Key`: the tasks' numbers, which is enough to answer again.
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
