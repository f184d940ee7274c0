import Core
import TestSupport
import Testing

/// docs/concepts.md "Background refresh" and "Conditions and discretion".
@Suite struct RefreshTests {
    private let refresh = "/v1/app/background-refresh"

    @Test func `The interval is never, the minimum or longer`() async throws {
        let scene = try await Scene()
        let first = try await scene.api.get(refresh)
        expect(first, 200)
        #expect(first.json["minimumBackgroundFetchInterval"] == "never" && first.json["nextFetchAt"].isNull)
        #expect(first.json["history"] == [] && first.json["backgroundRefreshStatus"] == "available", "\(first.text)")
        for wrong in [899, 0, -1, "often", nil] as [JSON] {
            let answer = try await scene.api.put(refresh, ["minimumBackgroundFetchInterval": wrong])
            expectProblem(answer, 422, "invalid-value", pointer: "/minimumBackgroundFetchInterval")
        }
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        for right in ["minimum", 900, 1e9, 7200] as [JSON] {
            expect(try await scene.api.put(refresh, ["minimumBackgroundFetchInterval": right]), 200)
        }
        let set = try await scene.api.get(refresh)
        #expect(set.json["minimumBackgroundFetchInterval"].double == 7200 && set.json["nextFetchAt"].string != nil)
        try await scene.service.restart()
        #expect(try await scene.api.get(refresh).json["minimumBackgroundFetchInterval"].double == 7200)
    }

    @Test func `A fetch is completed by its response or by a request`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver(answers: [.json(["result": "newData"]), .launched])
        try await scene.launches(to: receiver)
        let first = try await scene.api.post("\(refresh)/simulate")
        expect(first, 202)
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.type == "app.performFetch" && delivery.isSigned(with: devSecret))
        let data = delivery.json["data"]
        #expect(
            data["launchId"].string == delivery.id && data["previousResult"].isNull && data["deadline"].string != nil)
        try await eventually("it is in the history") {
            try await scene.api.get(refresh).json["history"][0]["result"] == "newData"
        }
        expect(try await scene.api.post("\(refresh)/simulate"), 202)
        let second = try await receiver.waitForDelivery(count: 2)[1]
        #expect(second.json["data"]["previousResult"] == "newData")
        expectProblem(try await scene.api.post("\(refresh)/simulate"), 409, "refresh-unavailable")
        let path = "/v1/launches/\(second.id ?? "")"
        try await eventually("it is launched") { try await scene.api.get(path).json["state"] == "launched" }
        let done = try await scene.api.post("\(path)/complete", ["result": "noData"])
        expect(done, 200)
        #expect(try await scene.api.post("\(path)/complete", ["result": "noData"]).json == done.json)
        #expect(try await scene.api.get(refresh).json["history"].array?.count == 2)
    }

    @Test func `A late completion of a fetch is refused`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        expect(try await scene.api.post("\(refresh)/simulate"), 202)
        let delivery = try #require(try await receiver.waitForDelivery().first)
        try await eventually("the deadline passes", within: .seconds(90)) {
            try await scene.api.get(refresh).json["history"][0]["result"] == "failed"
        }
        let late = try await scene.api.post("/v1/launches/\(delivery.id ?? "")/complete", ["result": "newData"])
        expectProblem(late, 409, "fetch-late")
        #expect(receiver.deliveries.count == 1)
    }

    @Test func `A status that denies stops fetches, with an event`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        expect(try await scene.admin.patch("/v1/apps/dev", ["backgroundRefreshStatus": "denied"]), 200)
        let told = try await receiver.waitForDelivery(type: "app.backgroundRefreshStatusDidChange")
        #expect(told.first?.json["data"]["backgroundRefreshStatus"] == "denied")
        expectProblem(try await scene.api.post("\(refresh)/simulate"), 409, "refresh-unavailable")
        #expect(try await scene.api.get("/v1/app").json["backgroundRefreshStatus"] == "denied")
    }

    @Test func `A change of the operator's status is reported to each app that it affects`() async throws {
        let scene = try await Scene()
        let (mine, denied, others) = (try Receiver(), try Receiver(), try Receiver())
        try await scene.launches(to: mine)
        for (name, receiver, status) in [
            ("com.example.denied", denied, "restricted"), ("com.example.b", others, "available"),
        ] {
            let app = try await scene.admin.post(
                "/v1/apps",
                [
                    "identifier": .string(name), "webhook": ["url": .string(receiver.url)],
                    "backgroundRefreshStatus": .string(status),
                ])
            expect(app, 201)
        }
        expect(try await scene.admin.put("/v1/system/conditions", ["backgroundRefreshStatus": "restricted"]), 200)
        for receiver in [mine, others] {
            let told = try await receiver.waitForDelivery(type: "app.backgroundRefreshStatusDidChange")
            #expect(told.first?.json["data"]["backgroundRefreshStatus"] == "restricted")
        }
        // The stricter of both statuses applies, in the app and in its refresh.
        expect(try await scene.admin.patch("/v1/apps/dev", ["backgroundRefreshStatus": "denied"]), 200)
        #expect(try await scene.api.get("/v1/app").json["backgroundRefreshStatus"] == "restricted")
        let refresh = try await scene.api.get(refresh).json
        #expect(refresh["backgroundRefreshStatus"] == "restricted" && refresh["nextFetchAt"].isNull, "\(refresh)")
        expect(try await scene.admin.put("/v1/system/conditions", [:]), 200)
        let told = try await others.waitForDelivery(count: 2)
        #expect(told[1].json["data"]["backgroundRefreshStatus"] == "available")
        let again = try await mine.waitForDelivery(count: 2)
        #expect(again[1].json["data"]["backgroundRefreshStatus"] == "denied")
        #expect(denied.deliveries.isEmpty, "nothing changed for it")
    }

    @Test func `A force-quit app is not fetched until it is activated`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver(answers: [.json(["result": "noData"])])
        try await scene.launches(to: receiver)
        expect(try await scene.api.put(refresh, ["minimumBackgroundFetchInterval": "minimum"]), 200)
        expect(try await scene.api.post("/v1/app/force-quit"), 202)
        expectProblem(try await scene.api.post("\(refresh)/simulate"), 409, "refresh-unavailable")
        let quit = try await scene.api.get(refresh).json
        #expect(quit["nextFetchAt"].isNull && quit["why"].string?.contains("force-quit") == true, "\(quit)")
        expect(try await scene.api.post("/v1/app/activate"), 200)
        #expect(try await scene.api.get(refresh).json["nextFetchAt"].string != nil)
        expect(try await scene.api.post("\(refresh)/simulate"), 202)
        _ = try await receiver.waitForDelivery(type: "app.performFetch")
    }

    @Test func `A discretionary task waits for good conditions`() async throws {
        let scene = try await Scene(configuration: ["isDiscretionary": true])
        scene.origin.serve("/a", .text("x"))
        let bad: JSON = ["power": ["external": false, "lowPowerMode": true]]
        expect(try await scene.admin.put("/v1/system/conditions", bad), 200)
        let number = try await scene.download("/a")
        let waiting = try await scene.waitFor("is deferred", task: number) { $0["phase"] == "deferred" }
        #expect(waiting["waitingFor"][0]["detail"].string?.isEmpty == false, "\(waiting)")
        try await scene.makeSession("eager")
        #expect(
            try await scene.completed(try await scene.download("/a", in: "eager"), in: "eager")["outcome"]
                == "succeeded")
        expect(try await scene.admin.put("/v1/system/conditions", [:]), 200)
        #expect(try await scene.completed(number)["outcome"] == "succeeded")
    }

    @Test func `A task waits for a reachable and inexpensive network`() async throws {
        let scene = try await Scene(configuration: ["allowsExpensiveNetworkAccess": false])
        scene.origin.serve("/a", .text("x"))
        for bad in [["network": ["reachable": false]], ["network": ["expensive": true]]] as [JSON] {
            expect(try await scene.admin.put("/v1/system/conditions", bad), 200)
            let number = try await scene.download("/a")
            let waiting = try await scene.waitFor("waits", task: number) { $0["phase"] == "waitingForConnectivity" }
            #expect(waiting["state"] == "running" && !waiting["waitingFor"][0].isNull, "\(waiting)")
            expect(try await scene.admin.put("/v1/system/conditions", [:]), 200)
            #expect(try await scene.completed(number)["outcome"] == "succeeded")
        }
    }

    @Test(.enabled(if: TestStore.nodes == 1, "a bucket keeps no part of less than 8 MiB"))
    func `A running discretionary transfer stops when conditions end, and resumes later`() async throws {
        let scene = try await Scene(configuration: ["isDiscretionary": true])
        let gate = Gate()
        scene.origin.serve(
            "/b", .generated(seed: 4, length: 400_000), turns: [[.holdBody(after: 200_000, gate)]])
        let number = try await scene.download("/b")
        try await scene.waitFor("has begun", task: number) { ($0["countOfBytesReceived"].int ?? 0) >= 100_000 }
        expect(try await scene.admin.put("/v1/system/conditions", ["power": ["external": false]]), 200)
        try await scene.waitFor("is deferred", task: number) { $0["phase"] == "deferred" }
        try await eventually("the connection is closed") { scene.origin.inFlight.now == 0 }
        expect(try await scene.admin.put("/v1/system/conditions", [:]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded")
        #expect(task["attempts"]["count"] == 1, "stopping charged an attempt: \(task["attempts"])")
        #expect(scene.origin.requests("/b").last?.fields["Range"] != nil)
        #expect(task["content"]["digest"]["value"].string == Content.sha256(seed: 4, length: 400_000))
        gate.open()
    }

    @Test func `Discretionary tasks of a denied app are cancelled with reason 1, and others continue`() async throws {
        let scene = try await Scene(configuration: ["isDiscretionary": true])
        let gate = Gate()
        scene.origin.serve("/c", .text("x"), always: [.hold(gate)])
        let number = try await scene.download("/c")
        try await scene.makeSession("eager")
        let other = try await scene.download("/c", in: "eager")
        expect(try await scene.admin.patch("/v1/apps/dev", ["backgroundRefreshStatus": "denied"]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "cancelled")
        #expect(task["error"]["backgroundTaskCancelledReason"] == 1, "\(task["error"])")
        // A new task is cancelled as well, and its response says so.
        let late = try await scene.create(scene.downloadOf("/c"))
        #expect(late["state"] == "completed" && late["outcome"] == "cancelled", "\(late)")
        #expect(late["error"]["code"] == -999 && late["error"]["backgroundTaskCancelledReason"] == 1, "\(late)")
        let batch = try await scene.api.post(
            "/v1/sessions/s/tasks/batch", ["tasks": [scene.downloadOf("/c"), scene.downloadOf("/c")]])
        expect(batch, 201)
        gate.open()
        #expect(try await scene.completed(other, in: "eager")["outcome"] == "succeeded")
        let all = completions(try await scene.events())
        #expect(all.count == 4 && all.values.allSatisfy { $0["error"]["backgroundTaskCancelledReason"] == 1 }, "\(all)")
        expectSound(try await scene.events())
        #expect(scene.origin.requests("/c").count == 2, "a forbidden task was tried")
        expect(try await scene.admin.patch("/v1/apps/dev", ["backgroundRefreshStatus": "available"]), 200)
        #expect(try await scene.completed(try await scene.download("/c"))["outcome"] == "succeeded")
    }
}
