import Core
import HTTPServer
import TestSupport
import Testing

@testable import API

@Suite struct EventRoutesTests {
    /// Creates a task and cancels it: two events, metrics and completion.
    private func completeTask(_ api: ServedAPI) async throws {
        let created = try await api.dev.post("/v1/sessions/s/tasks", api.task())
        let place = try #require(created.fields["Location"])
        _ = try await api.dev.post(place + "/cancel")
    }

    @Test func `Events are read after a sequence number and acknowledged through one`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let empty = try await api.dev.get("/v1/sessions/s/events")
            #expect(empty.json == ["items": [], "lastSeq": 0, "acknowledgedSeq": 0, "finished": true])
            try await completeTask(api)
            try await completeTask(api)
            let page = try await api.dev.get("/v1/sessions/s/events")
            let events = page.json["items"].array ?? []
            #expect(events.map { $0["seq"].int } == Array(1...events.count))
            #expect(events.last?["type"].string == "task.didComplete")
            #expect(events.last?["sessionIdentifier"].string == "s")
            #expect(events.last?["data"]["outcome"].string == "cancelled")
            let last = try #require(page.json["lastSeq"].int)
            #expect(last == events.count)
            let rest = try await api.dev.get("/v1/sessions/s/events?after=1&limit=1")
            #expect(rest.json["items"][0]["seq"].int == 2)
            #expect(rest.json["finished"].bool == false)

            let acknowledged = try await api.dev.post("/v1/sessions/s/events/ack", ["through": .integer(last)])
            #expect(acknowledged.status == 200)
            #expect(acknowledged.json["acknowledgedSeq"].int == last)
            #expect(try await api.dev.post("/v1/sessions/s/events/ack", ["through": 1]).status == 200)
            let beyond = try await api.dev.post("/v1/sessions/s/events/ack", ["through": .integer(last + 1)])
            #expect(beyond.status == 422)
            #expect(beyond.code == "ack-out-of-range")
            #expect(try await api.dev.get("/v1/sessions/s/events").json["items"].array?.isEmpty == true)
        }
    }

    @Test func `Streams without a reader hold one page of memory each until they are closed`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let url = "https://example.com/" + String(repeating: "u", count: 500)
            let tasks = JSON.array((0..<2000).map { _ in api.task(url) })
            #expect(try await api.dev.post("/v1/sessions/s/tasks/batch", ["tasks": tasks]).status == 201)
            #expect(try await api.dev.post("/v1/sessions/s/tasks/cancel", [:]).status == 200)
            let all = api.server.streamed.left
            do {
                var streams: [APIClient.Exchange] = []
                for _ in 0..<2 {
                    streams.append(
                        try await api.dev.begin(
                            "GET", "/v1/sessions/s/events?after=0", headers: [("Accept", "text/event-stream")]))
                }
                try await eventually("both wait for their clients") { all - api.server.streamed.left >= 2 * 32 * 1024 }
                #expect(all - api.server.streamed.left < 2 * 64 * 1024)
                withExtendedLifetime(streams) {}
            }
            try await eventually("all is given back") { api.server.streamed.left == all }
        }
    }

    @Test func `A held read attaches, and ends with the first event`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            async let page = api.dev.get("/v1/sessions/s/events?wait=60")
            try await eventually("the read attaches") {
                try await api.dev.get("/v1/sessions/s").json["attachment"]["kind"].string == "wait"
            }
            try await completeTask(api)
            #expect(try await page.json["items"].array?.isEmpty == false)
            try await eventually("it has left") {
                try await api.dev.get("/v1/sessions/s").json["attachment"].isNull
            }
            let start = ContinuousClock.now
            let timed = try await api.dev.get("/v1/sessions/s/events?after=2&wait=0.2")
            #expect(timed.status == 200)
            #expect(ContinuousClock.now - start >= .milliseconds(190))
        }
    }

    @Test func `A position beyond the last event belongs to an earlier incarnation and is refused at once`()
        async throws
    {
        try await ServedAPI.run { api async throws in
            try await api.session()
            try await completeTask(api)
            _ = try await api.dev.post("/v1/sessions/s/invalidate-and-cancel")
            try await eventually("it is invalid") {
                try await api.dev.get("/v1/sessions/s").json["state"].string == "invalid"
            }
            // Metrics, completion, and the end of the session.
            #expect(try await api.dev.get("/v1/sessions/s/events?after=3").status == 200)
            #expect(try await api.session().status == 201)
            let stream = [("Accept", "text/event-stream")]
            for (query, headers) in [
                ("?after=3", []), ("?after=3&wait=60", []), ("?after=3", stream),
                ("", stream + [("Last-Event-ID", "3")]),
            ] {
                let answer = try await api.dev.send(
                    "GET", "/v1/sessions/s/events\(query)", headers: headers, within: .seconds(30))
                #expect(answer.status == 409 && answer.code == "cursor-invalid", "\(query) \(headers)")
                #expect(answer.json["incarnation"].int == 2 && answer.json["lastSeq"].int == 0)
            }
            #expect(try await api.dev.get("/v1/sessions/s/events?after=0&wait=0.1").status == 200)
        }
    }

    @Test func `A held read of a session that is replaced ends at once, with the position of its successor`()
        async throws
    {
        try await ServedAPI.run { api async throws in
            try await api.session()
            _ = try await api.dev.post("/v1/sessions/s/invalidate-and-cancel")
            let poll = try await api.dev.begin(
                "GET", "/v1/sessions/s/events?after=1&wait=60", within: .seconds(30))
            try await eventually("the read attaches") {
                try await api.dev.get("/v1/sessions/s").json["attachment"]["kind"].string == "wait"
            }
            #expect(try await api.session().status == 201)
            let answer = try await poll.answer()
            #expect(answer.status == 409 && answer.code == "cursor-invalid")
            #expect(answer.json["incarnation"].int == 2 && answer.json["lastSeq"].int == 0)
        }
    }

    @Test func `A client that disconnects is no longer attached`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            func kind() async throws -> String? {
                try await api.dev.get("/v1/sessions/s").json["attachment"]["kind"].string
            }
            let poll = try await api.dev.begin("GET", "/v1/sessions/s/events?wait=60")
            try await eventually("the read attaches") { try await kind() == "wait" }
            poll.abort()
            try await eventually("it has left", within: .seconds(40)) { try await kind() == nil }
            let stream = try await api.dev.openStream("/v1/sessions/s/events")
            try await eventually("the stream attaches") { try await kind() == "stream" }
            stream.close()
            try await eventually("it has left too", within: .seconds(40)) { try await kind() == nil }
        }
    }

    @Test func `A stream sends stored events with ids and live events without`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            try await completeTask(api)
            let stream = try await api.dev.openStream("/v1/sessions/s/events?after=0")
            try await stream.wait("the events before") { $0.contains { $0.type == "task.didComplete" } }
            try await completeTask(api)
            let events = try await stream.wait("the events since") { events in
                events.filter { $0.type == "task.didComplete" }.count == 2
            }
            let kept = events.filter { $0.id != nil }
            #expect(kept.compactMap { Int($0.id ?? "") } == Array(1...kept.count))
            #expect(kept.allSatisfy { $0.json["seq"].int.map(String.init) == $0.id })
            for event in events where event.id == nil { #expect(event.json["seq"].isNull, "\(event)") }
            stream.close()

            let again = try await api.dev.openStream(
                "/v1/sessions/s/events?after=0", headers: [("Last-Event-ID", "2")])
            let rest = try await again.wait("the rest") { $0.contains { $0.id == "\(kept.count)" } }
            #expect(rest.first?.id == "3")
        }
    }

    @Test func `A silent stream sends heartbeats, and ends with its key`() async throws {
        try await ServedAPI.run(configured: { $0.heartbeat = .milliseconds(100) }) { api async throws in
            try await api.session()
            let created = try await api.admin.post("/v1/apps/dev/keys", ["scopes": ["events"]])
            let stream = try await api.client(created).openStream("/v1/sessions/s/events")
            try await eventually("heartbeats") { stream.comments >= 3 }
            _ = try await api.admin.delete(try #require(created.fields["Location"]))
            try await eventually("the end of the stream") { stream.hasEnded }
        }
    }

    @Test func `A stream ends with its session and with the service`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            let stream = try await api.dev.openStream("/v1/sessions/s/events")
            _ = try await api.dev.delete("/v1/sessions/s")
            try await eventually("the end of the stream") { stream.hasEnded }
            try await api.session("t")
            let other = try await api.dev.openStream("/v1/sessions/t/events")
            await api.http.stop(within: .seconds(5))
            try await eventually("the end of the other") { other.hasEnded }
        }
    }

    @Test func `The number of held requests of a key is limited`() async throws {
        try await ServedAPI.run(configured: { $0.heldRequestsPerKey = 1 }) { api async throws in
            try await api.session()
            let stream = try await api.dev.openStream("/v1/sessions/s/events")
            let refused = try await api.dev.get("/v1/sessions/s/events?wait=1")
            #expect(refused.status == 429)
            #expect(refused.code == "rate-limited")
            stream.close()
            try await eventually("room again") {
                try await api.dev.get("/v1/sessions/s/events?wait=0.1").status == 200
            }
        }
    }

    @Test func `One client holds a session until it releases the lease or another client takes over`() async throws {
        try await ServedAPI.run { api async throws in
            try await api.session()
            try await completeTask(api)
            let path = "/v1/sessions/s/attachment"
            let taken = try await api.dev.post(path, ["ttl": 60])
            #expect(taken.status == 201)
            #expect(taken.json["epoch"].int == 1)
            #expect(taken.fields["Location"] == path + "?epoch=1")
            #expect(try await api.dev.get("/v1/sessions/s").json["attachment"]["kind"].string == "lease")
            let second = try await api.dev.post(path, [:])
            #expect(second.status == 409)
            #expect(second.code == "session-in-use")
            let renewed = try await api.dev.post(path, ["epoch": 1])
            #expect(renewed.status == 200 && renewed.fields["Location"] == nil)
            #expect(try await api.dev.post("/v1/sessions/s/events/ack", ["through": 1]).code == "attachment-fenced")
            #expect(try await api.dev.post("/v1/sessions/s/events/ack", ["through": 1, "epoch": 1]).status == 200)
            let overruled = try await api.dev.post(path, ["takeover": true])
            #expect(overruled.json["epoch"].int == 2)
            #expect(overruled.fields["Location"] == path + "?epoch=2")
            #expect(try await api.dev.post(path, ["epoch": 1]).code == "attachment-fenced")
            #expect(try await api.dev.delete(path).parameters == ["epoch"])
            #expect(try await api.dev.delete(path + "?epoch=1").status == 409)
            #expect(try await api.dev.delete(path + "?epoch=2").status == 204)
            #expect(try await api.dev.get("/v1/sessions/s").json["attachment"].isNull)
        }
    }
}
