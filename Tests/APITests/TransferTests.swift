import Core
import TestSupport
import Testing

@testable import API

@Suite struct TransferTests {
    @Test func `A download is created, awaited, and logged in order`() async throws {
        let origin = try OriginServer()
        origin.serve("/file", .generated(seed: 1, length: 300_000))
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            let created = try await api.dev.post(
                "/v1/sessions/s/tasks", api.task(origin.url("/file"), state: "running"))
            let place = try #require(created.fields["Location"])
            let done = try await api.dev.get(place + "?wait=60")
            #expect(done.json["state"].string == "completed")
            #expect(done.json["outcome"].string == "succeeded")
            #expect(done.json["countOfBytesReceived"].int == 300_000)
            #expect(done.json["progress"]["fractionCompleted"].double == 1)
            let events = try await api.dev.get("/v1/sessions/s/events").json["items"].array ?? []
            #expect(
                events.map { $0["type"].string } == [
                    "task.didFinishDownloading", "task.didFinishCollectingMetrics", "task.didComplete",
                ])
            #expect(events[0]["data"]["contentURL"].string == "http://service.test\(place)/content")
        }
    }

    @Test func `A stream follows a transfer, and ends with its last event`() async throws {
        let origin = try OriginServer()
        origin.serve(
            "/file", .generated(seed: 1, length: 200_000),
            turns: [[.trickle(size: 10_000, pause: .milliseconds(100))]])
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            let stream = try await api.dev.openStream("/v1/sessions/s/events")
            try await eventually("the stream attaches") {
                try await api.dev.get("/v1/sessions/s").json["attachment"]["kind"].string == "stream"
            }
            _ = try await api.dev.post("/v1/sessions/s/tasks", api.task(origin.url("/file"), state: "running"))
            let events = try await stream.wait("the end") { $0.contains { $0.type == "task.didComplete" } }
            let types = events.compactMap(\.type)
            #expect(types.first == "task.didCreate")
            #expect(types.contains("task.didWriteData"))
            #expect(types.last == "task.didComplete")
            let totals = events.filter { $0.type == "task.didWriteData" }
                .compactMap { $0.json["data"]["totalBytesWritten"].int }
            #expect(totals == totals.sorted())
        }
    }

    @Test func `A running download shows the response that its bytes belong to`() async throws {
        let origin = try OriginServer()
        origin.serve("/file", .generated(seed: 1, length: 400_000), turns: [[.stall(after: 200_000)]])
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            let task = api.task(origin.url("/file"), state: "running")
            let created = try await api.dev.post("/v1/sessions/s/tasks", task)
            let place = try #require(created.fields["Location"])
            let shown = try await eventually("the head") { () -> JSON? in
                let task = try await api.dev.get(place).json
                return task["response"].isNull ? .none : task
            }
            #expect(shown["state"] == "running" && shown["response"]["statusCode"] == 200)
            #expect(shown["response"]["expectedContentLength"].int == 400_000)
        }
    }

    @Test func `Resume data starts one new task`() async throws {
        let origin = try OriginServer()
        let query = String(repeating: "signature", count: 600)
        origin.serve(
            "/file", .generated(seed: 2, length: 400_000).with { $0.etag = "\"one\"" },
            turns: [[.stall(after: 200_000)]])
        try await ServedAPI.run(loops: true) { api async throws in
            try await api.session()
            let task = api.task(origin.url("/file?\(query)"), state: "running")
            let place = try #require(try await api.dev.post("/v1/sessions/s/tasks", task).fields["Location"])
            try await eventually("the first half") {
                try await api.dev.get(place).json["countOfBytesReceived"].int == 200_000
            }
            let cancelled = try await api.dev.post(place + "/cancel", ["byProducingResumeData": true])
            #expect(cancelled.status == 200)
            let resumeData = try #require(cancelled.json["resumeData"].string, "\(cancelled.text)")
            let again: JSON = ["kind": "download", "resumeData": .string(resumeData)]
            let created = try await api.dev.post("/v1/sessions/s/tasks", again)
            #expect(created.status == 201)
            let done = try await api.dev.get(try #require(created.fields["Location"]) + "?wait=60")
            #expect(done.json["outcome"].string == "succeeded")
            #expect(done.json["countOfBytesReceived"].int == 400_000)
            let spent = try await api.dev.post("/v1/sessions/s/tasks", again)
            #expect(spent.status == 409)
            #expect(spent.code == "resume-data-spent" && spent.pointers == ["/resumeData"])
            let batch = try await api.dev.post("/v1/sessions/s/tasks/batch", ["tasks": [api.task(), again]])
            #expect(batch.code == "resume-data-spent" && batch.pointers == ["/tasks/1/resumeData"])
            #expect(origin.requests.last?.fields["Range"] == "bytes=200000-")
        }
    }
}
