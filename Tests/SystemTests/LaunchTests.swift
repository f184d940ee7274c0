import Core
import TestSupport
import Testing

/// docs/webhooks.md and docs/concepts.md "Launches, step by step".
@Suite struct LaunchTests {
    private func finishTen(_ scene: Scene, _ receiver: Receiver) async throws -> Gate {
        let gate = Gate()
        scene.origin.serve("/a", .generated(seed: 1, length: 10))
        scene.origin.serve("/last", .generated(seed: 2, length: 10), turns: [[.hold(gate)]])
        var tasks = (0..<8).map { _ in scene.downloadOf("/a") }
        tasks += [scene.downloadOf("/nowhere"), scene.downloadOf("/last")]
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        try await eventually("nine are done") { try await scene.session()["taskCounts"]["completed"] == 9 }
        return gate
    }

    /// Finishes a download of a service whose launches go to `receiver`, and waits for the first one.
    private func finishOne(
        _ receiver: Receiver, _ more: [String: JSON] = [:]
    ) async throws -> (scene: Scene, delivery: Receiver.Delivery, path: String) {
        let scene = try await Scene()
        try await scene.launches(to: receiver, more)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        let delivery = try #require(try await receiver.waitForDelivery().first)
        return (scene, delivery, "/v1/launches/\(delivery.id ?? "")")
    }

    @Test func `Ten tasks launch once, after the last`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let gate = try await finishTen(scene, receiver)
        try await stays("no launch yet", for: .seconds(1)) { receiver.deliveries.isEmpty }
        gate.open()
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.type == "session.handleEvents" && delivery.isSigned(with: devSecret))
        #expect(delivery.fields["Content-Type"]?.hasPrefix("application/json") == true)
        let data = delivery.json["data"]
        #expect(data["launchId"].string == delivery.id && delivery.id?.hasPrefix("lnch_") == true)
        #expect(data["app"] == "dev" && data["sessionIdentifier"] == "s" && data["reasons"] == ["tasksFinished"])
        let session = try await scene.session()
        #expect(data["lastSeq"] == session["lastEventSeq"] && data["pendingEvents"] == data["lastSeq"], "\(data)")
        let counts: JSON = ["succeeded": 9, "httpError": 1, "failed": 0, "cancelled": 0, "notModified": 0]
        #expect(data["taskCounts"] == counts && data["events"] == [], "\(data)")
        #expect(data["expiresAt"].string != nil && delivery.json["timestamp"].string != nil)
        let base = "http://127.0.0.1:\(scene.service.port)/v1"
        #expect(data["completionURL"].string == "\(base)/launches/\(delivery.id ?? "")/complete")
        #expect(data["eventsURL"].string?.hasPrefix("\(base)/sessions/s/events") == true)
        #expect(session["launch"]["launchId"].string == delivery.id, "\(session)")
        try await stays("one launch", for: .seconds(2)) { receiver.deliveries.count == 1 }
    }

    @Test func `A receiver may respond until the operator's deadline`() async throws {
        let scene = try await Scene(["--webhook-timeout", "1s"])
        let receiver = try Receiver(answers: [.hang])
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        // Fifteen seconds would exceed the test's limit.
        let attempt = try await eventually("a failed attempt", within: .seconds(12)) {
            try await scene.launches().first.flatMap { $0["attempts"].array?.first }
        }
        let peer = "127.0.0.1:\(receiver.port)"
        #expect(attempt["error"].string == "\(peer) did not respond in time: timed out.", "\(attempt)")
        let refused = try await ServiceProcess.run(["check-config", "--webhook-timeout", "0"])
        #expect(refused.status != .exited(0) && refused.errors.contains("webhook-timeout"), "\(refused.errors)")
    }

    @Test func `A launch is completed by a request, and causes no other`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        try await finishTen(scene, receiver).open()
        let delivery = try #require(try await receiver.waitForDelivery().first)
        let last = try #require(delivery.json["data"]["lastSeq"].int)
        let path = "/v1/launches/\(delivery.id ?? "")"
        try await eventually("it is launched") { try await scene.api.get(path).json["state"] == "launched" }
        let done = try await scene.api.post("\(path)/complete", [:])
        expect(done, 200)
        #expect(done.json["state"] == "completed", "\(done.text)")
        let again = try await scene.api.post("\(path)/complete", [:])
        #expect(again.status == 200 && again.json == done.json, "\(again.text)")
        let session = try await scene.session()
        #expect(session["acknowledgedSeq"].int ?? 0 >= last && session["launch"].isNull, "\(session)")
        let events = try await scene.events()
        expectSound(events)
        #expect(events.last?["type"] == "session.didFinishEvents" && events.last?["seq"].int == last + 1)
        #expect(events.last?["data"]["launchId"].string == delivery.id)
        let launch = try await scene.api.get(path).json
        #expect(launch["kind"] == "session.handleEvents" && launch["attempts"].array?.count == 1, "\(launch)")
        #expect(launch["attempts"][0]["statusCode"] == 204 && launch["completedAt"].string != nil, "\(launch)")
        expectProblem(try await scene.api.post("\(path)/redeliver"), 409, "launch-not-open")
        try await stays("no other launch", for: .seconds(19)) { receiver.deliveries.count == 1 }
        try await scene.completed(try await scene.download("/a"))
        #expect(try await receiver.waitForDelivery(count: 2)[1].id != delivery.id)
    }

    @Test func `A launch is completed by its response`() async throws {
        let receiver = try Receiver { _ in .json(["completed": true]) }
        let (scene, delivery, _) = try await finishOne(receiver)
        try await eventually("it is completed") {
            try await scene.api.get("/v1/launches/\(delivery.id ?? "")").json["state"] == "completed"
        }
        let session = try await scene.session()
        #expect(session["acknowledgedSeq"].int ?? 0 >= delivery.json["data"]["lastSeq"].int ?? 99, "\(session)")
        #expect(try await scene.events().last?["type"] == "session.didFinishEvents")
        try await stays("one launch", for: .seconds(6)) { receiver.deliveries.count == 1 }
    }

    @Test func `A partial completion is followed by another launch`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        try await finishTen(scene, receiver).open()
        let first = try #require(try await receiver.waitForDelivery().first)
        expect(try await scene.api.post("/v1/launches/\(first.id ?? "")/complete", ["through": 3]), 200)
        #expect(try await scene.session()["acknowledgedSeq"] == 3)
        let second = try await receiver.waitForDelivery(count: 2)[1]
        #expect(second.id != first.id)
        #expect(second.json["data"]["pendingEvents"].int ?? 0 > 0)
    }

    @Test func `A failed delivery is repeated, identical to the byte`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver(answers: [.status(500), .launched])
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        let deliveries = try await receiver.waitForDelivery(count: 2)
        #expect(deliveries[0].id == deliveries[1].id && deliveries[0].body == deliveries[1].body)
        #expect(deliveries.allSatisfy { $0.isSigned(with: devSecret) })
        #expect(deliveries[1].time - deliveries[0].time >= .milliseconds(4900))
        let attempts = try await scene.api.get("/v1/launches/\(deliveries[0].id ?? "")").json["attempts"]
        #expect(attempts[0]["statusCode"] == 500 && attempts[0]["number"] == 1, "\(attempts)")
    }

    @Test(arguments: ["close", "redirect", "gone", "busy"])
    func `Unsuccessful responses are failures`(_ kind: String) async throws {
        let scene = try await Scene()
        let target = try Receiver()
        let answers: [String: Receiver.Answer] = [
            "close": .close, "redirect": .status(302, [("Location", target.url)]), "gone": .status(410),
            "busy": .status(503, [("Retry-After", "3600")]),
        ]
        let receiver = try Receiver(answers: [answers[kind] ?? .close])
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        try await receiver.waitForDelivery()
        let launch = try await eventually("the attempt is recorded") {
            try await scene.launches().first { $0["attempts"].array?.isEmpty == false && $0["state"] != "delivering" }
        }
        #expect(launch["state"].string == (kind == "gone" ? "parked" : "pending"), "\(launch)")
        #expect(target.deliveries.isEmpty)
        let webhook = try await scene.api.get("/v1/app").json["webhook"]
        #expect(webhook["state"].string == (kind == "gone" ? "disabled" : "enabled"), "\(webhook)")
        #expect(webhook["disabledReason"].isNull == (kind != "gone"), "\(webhook)")
        if kind == "busy" {
            let next = launch["nextAttemptAt"].string.flatMap { Timestamp(rfc3339: $0) }
            #expect(next.map { $0.milliseconds - wallMilliseconds() > 3_000_000 } == true, "\(launch)")
        }
    }

    @Test func `A receiver that never completes is launched again with the same identifier`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver, ["launchDeadline": 5])
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        let deliveries = try await receiver.waitForDelivery(count: 2)
        #expect(deliveries[0].id == deliveries[1].id && deliveries[0].body == deliveries[1].body)
        #expect(deliveries[1].time - deliveries[0].time >= .milliseconds(9500))
        let path = "/v1/launches/\(deliveries[0].id ?? "")"
        let late = try await scene.api.post("\(path)/complete", [:])
        #expect(late.status == 200 && late.json["state"] == "completed", "\(late.text)")
    }

    @Test func `A late completion still acknowledges, and makes the retry unnecessary`() async throws {
        let receiver = try Receiver(answers: [.status(503, [("Retry-After", "15")])])
        let (scene, _, path) = try await finishOne(receiver)
        try await eventually("it waits for its retry") { try await scene.api.get(path).json["state"] == "pending" }
        let late = try await scene.api.post("\(path)/complete", [:])
        // DeliveryTests shows that no retry follows, with the test's own clock.
        #expect(late.status == 200 && late.json["state"] == "completed", "\(late.text)")
        #expect(receiver.deliveries.count == 1)
    }

    @Test func `A kill during delivery sends the same launch again`() async throws {
        let scene = try await Scene()
        let gate = Gate()
        let receiver = try Receiver { $0.number == 1 ? .hold(gate) : .launched }
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        try await receiver.waitForDelivery()
        try await scene.service.restart()
        let deliveries = try await receiver.waitForDelivery(count: 2)
        #expect(deliveries[0].id == deliveries[1].id && deliveries[0].body == deliveries[1].body)
        expect(try await scene.api.post("/v1/launches/\(deliveries[0].id ?? "")/complete", [:]), 200)
        expectSound(try await scene.events())
        try await stays("no third", for: .seconds(2)) { receiver.deliveries.count == 2 }
    }

    @Test func `A launch stays launched after a kill`() async throws {
        let receiver = try Receiver()
        let (scene, _, path) = try await finishOne(receiver)
        try await eventually("it is launched") { try await scene.api.get(path).json["state"] == "launched" }
        try await scene.service.restart()
        #expect(try await scene.api.get(path).json["state"] == "launched")
        expect(try await scene.api.post("\(path)/complete", [:]), 200)
        try await stays("no second", for: .seconds(6)) { receiver.deliveries.count == 1 }
    }

    @Test func `An attached client is not launched, a detached one is after the grace period`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        let stream = try await scene.api.openStream("/v1/sessions/s/events")
        try await scene.completed(try await scene.download("/a"))
        try await stays("no launch while attached", for: .seconds(6)) { receiver.deliveries.isEmpty }
        #expect(try await scene.session()["attachment"]["kind"] == "stream")
        stream.close()
        let closed = ContinuousClock.now
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.time - closed >= .milliseconds(4500))
        try await stays("one launch", for: .seconds(1)) { receiver.deliveries.count == 1 }
    }

    @Test func `A client that has acknowledged all events is not launched`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        let stream = try await scene.api.openStream("/v1/sessions/s/events")
        try await scene.completed(try await scene.download("/a"))
        let last = try await scene.session()["lastEventSeq"]
        expect(try await scene.api.post("/v1/sessions/s/events/ack", ["through": last]), 200)
        stream.close()
        try await stays("no launch", for: .seconds(8)) { receiver.deliveries.isEmpty }
    }

    @Test func `A disconnected long poll no longer counts as attached`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        let gate = Gate()
        scene.origin.serve("/a", .text("x"), turns: [[.hold(gate)]])
        let poll = try await scene.api.begin("GET", "/v1/sessions/s/events?wait=60")
        try await eventually("it is attached") { try await scene.session()["attachment"]["kind"] == "wait" }
        poll.abort()
        try await eventually("it is not", within: .seconds(40)) { try await scene.session()["attachment"].isNull }
        try await scene.download("/a")
        gate.open()
        try await receiver.waitForDelivery()
    }

    @Test func `The launched app's own reads do not supersede its launch`() async throws {
        let gate = Gate()
        let receiver = try Receiver { _ in .hold(gate) }
        let (scene, _, path) = try await finishOne(receiver)
        let stream = try await scene.api.openStream("/v1/sessions/s/events")
        try await stream.wait { $0.count == 3 }
        #expect(try await scene.api.get(path).json["state"] == "delivering")
        gate.open()
        try await eventually("it is launched") { try await scene.api.get(path).json["state"] == "launched" }
        expect(try await scene.api.get("/v1/sessions/s/events?wait=1"), 200)
        #expect(try await scene.api.get(path).json["state"] == "launched")
        expect(try await scene.api.post("\(path)/complete", [:]), 200)
        stream.close()
        try await stays("no other", for: .seconds(7)) { receiver.deliveries.count == 1 }
    }

    @Test func `A client that attaches without a launch supersedes a pending launch`() async throws {
        let receiver = try Receiver(answers: [.status(503, [("Retry-After", "15")]), .launched])
        let (scene, delivery, path) = try await finishOne(receiver)
        try await eventually("it waits") { try await scene.api.get(path).json["state"] == "pending" }
        let stream = try await scene.api.openStream("/v1/sessions/s/events")
        try await eventually("it is superseded") { try await scene.api.get(path).json["state"] == "superseded" }
        try await stays("no retry", for: .seconds(7)) { receiver.deliveries.count == 1 }
        expectProblem(try await scene.api.post("\(path)/redeliver"), 409, "launch-not-open")
        stream.close()
        let next = try await receiver.waitForDelivery(count: 2)[1]
        #expect(next.id != delivery.id)
    }

    @Test func `Without a URL a launch is parked until there is one`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        let launch = try await eventually("it is parked") {
            try await scene.launches().first { $0["state"] == "parked" }
        }
        let receiver = try Receiver()
        try await scene.launches(to: receiver, ["state": "paused"])
        try await stays("paused", for: .seconds(2)) { receiver.deliveries.isEmpty }
        try await scene.launches(to: receiver, ["state": "enabled"])
        #expect(try await receiver.waitForDelivery().first?.id == launch["launchId"].string)
    }

    @Test func `A session without launch events has no launches`() async throws {
        let scene = try await Scene(configuration: ["sessionSendsLaunchEvents": false])
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("x"))
        try await scene.completed(try await scene.download("/a"))
        try await stays("no launch", for: .seconds(3)) { receiver.deliveries.isEmpty }
        #expect(try await scene.launches().isEmpty)
        #expect(try await scene.events().count == 3)
    }

    @Test func `A launch contains the first events if configured`() async throws {
        let receiver = try Receiver()
        let (scene, delivery, _) = try await finishOne(receiver, ["includeEvents": 2])
        let events = try await scene.events()
        #expect(delivery.json["data"]["events"] == .array(Array(events.prefix(2))), "\(delivery.json)")
    }

    @Test func `A further reason during an open launch sends no webhook`() async throws {
        let receiver = try Receiver()
        let (scene, delivery, _) = try await finishOne(receiver)
        try await scene.completed(try await scene.download("/a"))
        try await stays("one launch", for: .seconds(2)) { receiver.deliveries.count == 1 }
        expect(try await scene.api.post("/v1/launches/\(delivery.id ?? "")/complete", [:]), 200)
        let second = try await receiver.waitForDelivery(count: 2)[1]
        #expect(second.id != delivery.id && second.json["data"]["taskCounts"]["succeeded"] == 1, "\(second.json)")
    }

    @Test func `Launches are listed by several states and kinds`() async throws {
        let receiver = try Receiver { $0.type == "app.performFetch" ? .launched : .json(["completed": true]) }
        let (scene, delivery, path) = try await finishOne(receiver)
        try await eventually("it is completed") { try await scene.api.get(path).json["state"] == "completed" }
        let fetch = try await scene.api.post("/v1/app/background-refresh/simulate").json["launchId"]
        try await eventually("the app is launched") {
            try await scene.api.get("/v1/launches/\(fetch.string ?? "")").json["state"] == "launched"
        }
        func list(_ query: String) async throws -> [JSON]? {
            try await scene.api.get("/v1/launches?order=asc&\(query)").json["items"].array?.map { $0["launchId"] }
        }
        let both: [JSON] = [.string(delivery.id ?? ""), fetch]
        #expect(try await list("state=launched,completed") == both)
        #expect(try await list("state=pending,launched") == [fetch])
        #expect(try await list("kind=app.performFetch,session.handleEvents") == both)
        #expect(try await list("kind=webhook.ping,session.handleEvents&state=completed,launched") == [both[0]])
        #expect(try await list("state=pending,parked") == [])
        // Lists in the form of openapi-python-client.
        #expect(try await list("state=launched&state=pending,completed&limit=2") == both)
        expectProblem(try await scene.api.get("/v1/launches?session=s&session=s"), 422, "invalid-value")
        for query in ["state=launched,", "state=launched,asleep", "kind=session.handleEvents,launched"] {
            let refused = try await scene.api.get("/v1/launches?\(query)")
            expectProblem(refused, 422, "invalid-value")
            #expect(refused.json["errors"][0]["parameter"].string == query.prefix { $0 != "=" }.description)
        }
    }

    @Test func `Redelivery sends an open launch now`() async throws {
        let receiver = try Receiver(answers: [.status(503, [("Retry-After", "3600")]), .launched])
        let (scene, delivery, path) = try await finishOne(receiver)
        try await eventually("it waits") { try await scene.api.get(path).json["state"] == "pending" }
        expect(try await scene.api.post("\(path)/redeliver"), 200)
        #expect(try await receiver.waitForDelivery(count: 2)[1].id == delivery.id)
        let states = try await scene.api.get("/v1/launches?session=s&kind=session.handleEvents")
        #expect(states.json["items"].array?.count == 1)
        expectProblem(try await scene.api.get("/v1/launches/lnch_unknown"), 404, "not-found")
        expectProblem(try await scene.api.get("/v1/launches?state=asleep"), 422, "invalid-value")
    }
}
