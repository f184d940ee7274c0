import Core
import TestSupport
import Testing

/// docs/concepts.md "Events" and "Attachment": the log of a session, and its readers.
@Suite struct EventTests {
    private let events = "/v1/sessions/s/events"

    private func threeDownloads(_ scene: Scene) async throws {
        scene.origin.serve("/a", .generated(seed: 1, length: 1000))
        for number in 1...3 {
            try await scene.download("/a", ["clientTaskId": .string("c-\(number)"), "group": "g"])
        }
        for number in 1...3 { try await scene.completed(number) }
    }

    @Test func `A download logs its events in order`() async throws {
        let scene = try await Scene()
        try await threeDownloads(scene)
        let all = try await scene.events()
        expectSound(all)
        #expect(all.count == 9)
        for number in 1...3 {
            let own = all.filter { $0["taskIdentifier"].int == number }
            let expected: [JSON] = ["task.didFinishDownloading", "task.didFinishCollectingMetrics", "task.didComplete"]
            try #require(own.map { $0["type"] } == expected, "\(own)")
            for event in own {
                #expect(event["sessionIdentifier"] == "s" && event["group"] == "g")
                #expect(event["clientTaskId"].string == "c-\(number)")
                #expect(event["occurredAt"].string.flatMap { Timestamp(rfc3339: $0) } != nil)
            }
            let finished = own[0]["data"]
            #expect(finished["length"] == 1000 && finished["expiresAt"].string != nil, "\(finished)")
            #expect(finished["suggestedFilename"] == "a", "\(finished)")
            #expect(finished["digest"]["value"].string == Content.sha256(seed: 1, length: 1000))
            let url = try #require(finished["contentURL"].string)
            #expect(url.hasSuffix("/v1/sessions/s/tasks/\(number)/content"))
            let metrics = own[1]["data"]
            #expect(metrics["redirectCount"] == 0 && metrics["transactionMetrics"].array?.count == 1, "\(metrics)")
            #expect(!metrics["taskInterval"].isNull)
            let complete = own[2]["data"]
            #expect(complete["outcome"] == "succeeded" && complete["error"].isNull, "\(complete)")
            #expect(complete["response"]["statusCode"] == 200)
        }
    }

    @Test func `Events are returned in pages`() async throws {
        let scene = try await Scene()
        try await threeDownloads(scene)
        let first = try await scene.api.get("\(events)?limit=4")
        expect(first, 200)
        #expect(first.json["items"].array?.compactMap { $0["seq"].int } == [1, 2, 3, 4])
        #expect(first.json["lastSeq"] == 9 && first.json["acknowledgedSeq"] == 0 && first.json["finished"] == false)
        let second = try await scene.api.get("\(events)?after=4&limit=100")
        #expect(second.json["items"].array?.compactMap { $0["seq"].int } == [5, 6, 7, 8, 9])
        #expect(second.json["finished"] == true)
        let end = try await scene.api.get("\(events)?after=9")
        #expect(end.json["items"] == [] && end.json["finished"] == true)
        for query in ["after=-1", "after=x", "limit=0", "wait=61", "nonsense=1"] {
            expectProblem(try await scene.api.get("\(events)?\(query)"), 422, "invalid-value")
        }
    }

    @Test func `Acknowledgement is cumulative, and refused beyond the end`() async throws {
        let scene = try await Scene()
        try await threeDownloads(scene)
        let ack = try await scene.api.post("\(events)/ack", ["through": 4])
        expect(ack, 200)
        for through in [2, 4, 0] {
            expect(try await scene.api.post("\(events)/ack", ["through": .integer(through)]), 200)
        }
        #expect(try await scene.session()["acknowledgedSeq"] == 4)
        let rest = try await scene.api.get(events)
        #expect(rest.json["items"].array?.compactMap { $0["seq"].int } == [5, 6, 7, 8, 9])
        #expect(rest.json["acknowledgedSeq"] == 4)
        let kept = try await scene.api.get("\(events)?after=0")
        #expect(kept.json["items"].array?.count == 9)
        expectProblem(
            try await scene.api.post("\(events)/ack", ["through": 10]), 422, "ack-out-of-range", pointer: "/through")
        expect(try await scene.api.post("\(events)/ack", [:]), 422)
        try await scene.service.restart()
        #expect(try await scene.session()["acknowledgedSeq"] == 4)
    }

    @Test func `A long poll ends with the first event`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10), turns: [[.hold(gate)]])
        let number = try await scene.download("/a")
        let nothing = try await scene.api.get("\(events)?wait=1")
        #expect(
            nothing.status == 200 && nothing.json["items"] == [] && nothing.json["finished"] == false, "\(nothing.text)"
        )
        async let held = scene.api.get("\(events)?after=0&wait=60")
        try await eventually("it is attached") { try await scene.session()["attachment"]["kind"] == "wait" }
        gate.open()
        #expect(try await held.json["items"].array?.isEmpty == false)
        try await scene.completed(number)
        let last = try #require(try await scene.session()["lastEventSeq"].int)
        let start = ContinuousClock.now
        #expect(try await scene.api.get("\(events)?after=0&wait=60").json["items"].array?.isEmpty == false)
        #expect(ContinuousClock.now - start < .seconds(40))
        #expect(try await scene.api.get("\(events)?after=\(last)&wait=1").json["finished"] == true)
    }

    @Test func `A stream sends stored events, then live ones`() async throws {
        let scene = try await Scene()
        try await threeDownloads(scene)
        let stream = try await scene.api.openStream("\(events)?after=3")
        try await stream.wait { $0.count >= 6 }
        #expect(stream.events.compactMap { $0.id } == ["4", "5", "6", "7", "8", "9"])
        for event in stream.events { #expect(event.json["seq"].int.map { "\($0)" } == event.id) }
        let again = try await scene.api.openStream(events, headers: [("Last-Event-ID", "7")])
        try await again.wait { $0.count >= 2 }
        #expect(again.events.compactMap { $0.id } == ["8", "9"])
        scene.origin.serve(
            "/slow", .generated(seed: 1, length: 40_000), always: [.trickle(size: 1000, pause: .milliseconds(50))])
        let number = try await scene.download("/slow")
        try await stream.wait("the completion") { $0.last?.json["type"] == "task.didComplete" && $0.count > 6 }
        let own = stream.events.map(\.json).filter { $0["taskIdentifier"].int == number }
        #expect(own.first?["type"] == "task.didCreate" && own.last?["type"] == "task.didComplete", "\(own)")
        let live = stream.events.filter { $0.json["seq"].isNull }
        #expect(live.allSatisfy { $0.id == nil && $0.json.has("seq") })
        let progress = own.filter { $0["type"] == "task.didWriteData" }
        #expect(!progress.isEmpty)
        let written = progress.compactMap {
            $0["data"]["totalBytesWritten"].int ?? $0["data"]["countOfBytesReceived"].int
        }
        #expect(written == written.sorted() && written.count == progress.count, "\(progress)")
        #expect(stream.events.compactMap { $0.id }.suffix(3) == ["10", "11", "12"])
        try await stays("nothing follows", for: .seconds(1)) { stream.events.last?.json["type"] == "task.didComplete" }
    }

    @Test func `Retries are live events only`() async throws {
        let scene = try await Scene(configuration: ["retryPolicy": ["statusCodes": [503], "initialDelay": 0.2]])
        let stream = try await scene.api.openStream(events)
        scene.origin.serve("/a", .text("x"), turns: [[.status(503)]])
        try await scene.completed(try await scene.download("/a"))
        let seen = try await stream.wait { $0.last?.json["type"] == "task.didComplete" }
        let retry = try #require(seen.map(\.json).first { $0["type"] == "task.willRetry" })
        #expect(
            retry["seq"].isNull && retry["data"]["nextAt"].string != nil && retry["data"].has("attempt"), "\(retry)")
        expectSound(try await scene.events())
    }

    @Test func `An attachment belongs to one client until another takes over`() async throws {
        let scene = try await Scene()
        try await threeDownloads(scene)
        let path = "/v1/sessions/s/attachment"
        let first = try await scene.api.post(path, ["ttl": 300])
        expect(first, 201)
        let epoch = first.json["epoch"]
        #expect(
            first.json["lastSeq"] == 9 && first.json["acknowledgedSeq"] == 0 && first.json["expiresAt"].string != nil)
        #expect(try await scene.session()["attachment"]["kind"] == "lease")
        let refused = try await scene.api.post(path, [:])
        expectProblem(refused, 409, "session-in-use")
        expect(try await scene.api.post(path, ["epoch": epoch, "ttl": 600]), 200)
        expectProblem(try await scene.api.post("\(events)/ack", ["through": 1]), 409, "attachment-fenced")
        expect(try await scene.api.post("\(events)/ack", ["through": 1, "epoch": epoch]), 200)
        let second = try await scene.api.post(path, ["takeover": true, "ttl": 300])
        expect(second, 201)
        #expect(second.json["epoch"].int ?? 0 > epoch.int ?? 0 && second.json["acknowledgedSeq"] == 1)
        expectProblem(
            try await scene.api.post("\(events)/ack", ["through": 2, "epoch": epoch]), 409, "attachment-fenced")
        expectProblem(try await scene.api.post(path, ["epoch": epoch]), 409, "attachment-fenced")
        expect(try await scene.api.post("\(events)/ack", ["through": 2, "epoch": second.json["epoch"]]), 200)
        try await scene.service.restart()
        expectProblem(
            try await scene.api.post("\(events)/ack", ["through": 3, "epoch": epoch]), 409, "attachment-fenced")
        expect(try await scene.api.delete("\(path)?epoch=\(second.json["epoch"])"), 204)
        #expect(try await scene.session()["attachment"].isNull)
        expectProblem(try await scene.api.post("\(events)/ack", ["through": 3]), 409, "attachment-fenced")
        for ttl in [4, 901] { expect(try await scene.api.post(path, ["ttl": .integer(ttl)]), 422) }
    }

    @Test func `A lease expires`() async throws {
        let scene = try await Scene()
        expect(try await scene.api.post("/v1/sessions/s/attachment", ["ttl": 5]), 201)
        try await eventually("it ends") { try await scene.session()["attachment"].isNull }
        expect(try await scene.api.post("/v1/sessions/s/attachment", [:]), 201)
    }

    @Test func `A stream survives an interruption without loss or repetition`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        var seen: [String] = []
        let stream = try await scene.api.openStream(events)
        for _ in 1...2 { try await scene.completed(try await scene.download("/a")) }
        seen += try await stream.wait { $0.compactMap { $0.id }.count >= 4 }.compactMap { $0.id }
        stream.close()
        try await scene.service.restart()
        for _ in 1...2 { try await scene.completed(try await scene.download("/a")) }
        let again = try await scene.api.openStream(events, headers: [("Last-Event-ID", seen.last ?? "")])
        seen += try await again.wait { $0.last?.id == "12" }.compactMap { $0.id }
        #expect(seen == (1...12).map { "\($0)" })
    }
}
