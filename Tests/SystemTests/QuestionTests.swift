import Core
import TestSupport
import Testing

/// docs/concepts.md "Questions": challenges, delayed requests and stored credentials.
@Suite struct QuestionTests {
    private static let basic: [Misbehaviour] = [
        .status(401, [("WWW-Authenticate", "Basic realm=\"the realm\"")], body: "no")
    ]
    private static let credential: JSON = ["user": "u", "password": "p"]
    private static let guarded: [Misbehaviour] = [
        .demand(authorization: expected, challenge: "Basic realm=\"the realm\"")
    ]
    private static let expected = "Basic " + Base64Text.encode(Array("u:p".utf8))

    private func openQuestion(_ scene: Scene) async throws -> JSON {
        try await eventually("a question is open") {
            try await scene.api.get("/v1/questions?session=s&state=open").json["items"].array?.first
        }
    }

    private func answer(_ scene: Scene, _ question: JSON, _ answer: JSON) async throws -> APIClient.Answer {
        try await scene.api.post("/v1/questions/\(question["questionId"].string ?? "")/answer", answer)
    }

    @Test func `A challenge launches the app, and its answer resumes the task`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("content"), turns: [Self.basic, Self.basic])
        let number = try await scene.download("/a")
        let delivery = try #require(try await receiver.waitForDelivery().first)
        #expect(delivery.json["data"]["reasons"] == ["authenticationRequired"])
        let event = try #require(try await scene.events().last)
        #expect(event["type"] == "task.didReceiveChallenge" && event["taskIdentifier"].int == number)
        let data = event["data"]
        let space = data["protectionSpace"]
        #expect(
            space["host"] == "127.0.0.1" && space["port"].int == Int(scene.origin.port) && space["protocol"] == "http")
        #expect(
            space["realm"] == "the realm" && space["authenticationMethod"] == "HTTPBasic" && space["isProxy"] == false)
        #expect(data["previousFailureCount"] == 0 && data["deadline"].string != nil, "\(data)")
        let running = try await scene.task(number)
        #expect(running["state"] == "running" && running["phase"] == "awaitingAnswer", "\(running)")
        let question = try await openQuestion(scene)
        #expect(question["questionId"] == data["questionId"])
        let wrong: JSON = ["disposition": "useCredential", "credential": ["user": "u", "password": "wrong"]]
        expect(try await answer(scene, question, wrong), 200)
        let again = try await eventually("it is asked again") { () -> JSON? in
            let open = try await openQuestion(scene)
            return open["questionId"] == question["questionId"] ? .none : open
        }
        #expect(again["previousFailureCount"] == 1, "\(again)")
        try await scene.service.restart()
        expect(try await answer(scene, again, ["disposition": "useCredential", "credential": Self.credential]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").last?.fields["Authorization"] == Self.expected)
        expectProblem(
            try await answer(scene, again, ["disposition": "cancelAuthenticationChallenge"]), 409, "question-answered")
        let text = try await scene.api.get("/v1/questions?session=s").text + scene.service.errors
        #expect(!text.contains("\"p\"") && !text.contains("wrong"), "\(text)")
        expectSound(try await scene.events())
    }

    @Test func `Questions are listed by several states`() async throws {
        let scene = try await Scene()
        try await scene.launches(to: try Receiver())
        scene.origin.serve("/a", .text("x"))
        for _ in 1...2 { try await scene.download("/a", ["confirmBeforeStart": true]) }
        func list(_ query: String) async throws -> [JSON] {
            try await scene.api.get("/v1/questions?\(query)").json["items"].array ?? []
        }
        let questions = try await eventually("two questions") { () -> [JSON]? in
            let open = try await list("state=open")
            return open.count == 2 ? open : nil
        }
        expect(try await answer(scene, questions[0], ["disposition": "continueLoading"]), 200)
        func places(_ query: String) async throws -> [Int?] {
            try await list(query).map { question in
                questions.firstIndex { $0["questionId"] == question["questionId"] }
            }
        }
        for session in ["", "session=s&"] {
            #expect(try await places(session + "state=answered,open") == [0, 1])
            #expect(try await places(session + "state=answered,open&order=desc") == [1, 0])
            #expect(try await places(session + "state=answered,open&order=desc&limit=1") == [1])
            #expect(try await places(session + "state=expired,answered") == [0])
        }
        expectProblem(try await scene.api.get("/v1/questions?state=open,,answered"), 422, "invalid-value")
    }

    @Test(arguments: ["cancelAuthenticationChallenge", "performDefaultHandling", "rejectProtectionSpace"])
    func `Other answers end the task`(_ disposition: String) async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/a", .text("content"), always: Self.basic)
        let number = try await scene.download("/a")
        expect(try await answer(scene, try await openQuestion(scene), ["disposition": .string(disposition)]), 200)
        let task = try await scene.completed(number)
        if disposition == "cancelAuthenticationChallenge" {
            #expect(task["outcome"] == "cancelled" && task["error"]["code"] == -999, "\(task)")
        } else {
            #expect(task["outcome"] == "httpError" && task["response"]["statusCode"] == 401, "\(task)")
        }
    }

    @Test func `A client with a lease gets a question without a webhook`() async throws {
        let scene = try await Scene()
        expect(try await scene.api.post("/v1/sessions/s/attachment", ["ttl": 60]), 201)
        scene.origin.serve("/a", .text("content"), always: Self.guarded)
        let number = try await scene.download("/a")
        let question = try await openQuestion(scene)
        #expect(question.object?["proposedCredential"] == .null, "\(question)")
        expect(
            try await answer(scene, question, ["disposition": "useCredential", "credential": Self.credential]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
    }

    @Test func `If no client answers questions, the 401 is the response`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("content"), always: Self.basic)
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "httpError" && task["response"]["statusCode"] == 401, "\(task)")
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        try await scene.makeSession("t", ["authenticationChallenges": "performDefaultHandling"])
        let other = try await scene.completed(try await scene.download("/a", in: "t"), in: "t")
        #expect(other["outcome"] == "httpError", "\(other)")
    }

    @Test func `A stored credential is used without a question`() async throws {
        let scene = try await Scene()
        scene.origin.serve("/a", .text("content"), always: Self.guarded)
        let space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(scene.origin.port)), "protocol": "http", "realm": "the realm",
            "authenticationMethod": "HTTPBasic",
        ]
        let made = try await scene.api.post(
            "/v1/credentials", ["protectionSpace": space, "credential": Self.credential])
        expect(made, 201)
        let list = try await scene.api.get("/v1/credentials")
        #expect(list.status == 200 && !list.text.contains("password"), "\(list.text)")
        let task = try await scene.completed(try await scene.download("/a"))
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").last?.fields["Authorization"] == Self.expected)
    }

    @Test func `A credential that is stored while a wrong answer is tried is sent next, without another question`()
        async throws
    {
        let scene = try await Scene()
        expect(try await scene.api.post("/v1/sessions/s/attachment", ["ttl": 60]), 201)
        let gate = Gate()
        let guarded = Self.guarded
        scene.origin.serve("/a", .text("content"), turns: [guarded, guarded + [.hold(gate)], guarded, guarded])
        let number = try await scene.download("/a")
        let wrong: JSON = ["user": "u", "password": "wrong"]
        let question = try await openQuestion(scene)
        expect(try await answer(scene, question, ["disposition": "useCredential", "credential": wrong]), 200)
        try await eventually("the wrong password is sent") { gate.waiting == 1 }
        let space: JSON = [
            "host": "127.0.0.1", "port": .integer(Int(scene.origin.port)), "protocol": "http", "realm": "the realm",
            "authenticationMethod": "HTTPBasic",
        ]
        let made = try await scene.api.post(
            "/v1/credentials", ["protectionSpace": space, "credential": Self.credential])
        expect(made, 201)
        gate.open()
        let task = try await scene.waitFor("is over, or asks again", task: number) {
            $0["state"] == "completed" || $0["phase"] == "awaitingAnswer"
        }
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(scene.origin.requests("/a").count == 3)
        #expect(scene.origin.requests("/a").last?.fields["Authorization"] == Self.expected)
    }

    @Test func `Each realm gets its own stored credential`() async throws {
        let scene = try await Scene()
        for name in ["one", "two"] {
            let secret = "Basic " + Base64Text.encode(Array("\(name):p".utf8))
            scene.origin.serve(
                "/\(name)", .text(name),
                always: [.demand(authorization: secret, challenge: "Basic realm=\"\(name)\"")])
            let space: JSON = [
                "host": "127.0.0.1", "port": .integer(Int(scene.origin.port)), "protocol": "http",
                "realm": .string(name), "authenticationMethod": "HTTPBasic",
            ]
            let credential: JSON = ["user": .string(name), "password": "p"]
            expect(
                try await scene.api.post("/v1/credentials", ["protectionSpace": space, "credential": credential]), 201)
        }
        for name in ["one", "two"] {
            let task = try await scene.completed(try await scene.download("/\(name)"))
            #expect(task["outcome"] == "succeeded", "\(task)")
            #expect(scene.origin.requests("/\(name)").count == 2)
        }
    }

    @Test func `A credential is sent only to the server that requested it`() async throws {
        let scene = try await Scene()
        let other = try OriginServer()
        try await scene.launches(to: try Receiver())
        other.serve("/b", .text("content"), always: Self.guarded)
        scene.origin.serve("/a", .text(""), always: [.redirect(other.url("/b"))])
        let number = try await scene.download("/a")
        let question = try await openQuestion(scene)
        #expect(question["protectionSpace"]["port"].int == Int(other.port), "\(question)")
        expect(try await answer(scene, question, ["disposition": "useCredential", "credential": Self.credential]), 200)
        let task = try await scene.completed(number)
        #expect(task["outcome"] == "succeeded", "\(task)")
        #expect(other.requests("/b").last?.fields["Authorization"] == Self.expected)
        #expect(scene.origin.requests.allSatisfy { $0.fields["Authorization"] == nil })
    }

    @Test func `An answer for the session serves its other tasks`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        for path in ["/a", "/b"] { scene.origin.serve(path, .text("content"), always: Self.guarded) }
        let number = try await scene.download("/a")
        let credential: JSON = ["user": "u", "password": "p", "persistence": "forSession"]
        let question = try await openQuestion(scene)
        expect(try await answer(scene, question, ["disposition": "useCredential", "credential": credential]), 200)
        try await scene.completed(number)
        let other = try await scene.completed(try await scene.download("/b"))
        #expect(other["outcome"] == "succeeded", "\(other)")
        #expect(scene.origin.requests("/b").last?.fields["Authorization"] == Self.expected)
        #expect(try await scene.api.get("/v1/questions?session=s").json["items"].array?.count == 1)
    }

    @Test func `A delayed request is confirmed, changed or cancelled`() async throws {
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        scene.origin.serve("/old", .text("old"))
        scene.origin.serve("/new", .text("new"))
        let request: JSON = ["url": .string(scene.origin.url("/new")), "headers": ["Authorization": "Bearer fresh"]]
        let answers: [(JSON, String?, JSON)] = [
            (["disposition": "continueLoading"], "old", "succeeded"),
            (["disposition": "useNewRequest", "request": request], "new", "succeeded"),
            (["disposition": "cancel"], nil, "cancelled"),
        ]
        for (reply, text, outcome) in answers {
            let number = try await scene.download("/old", ["confirmBeforeStart": true])
            let question = try await openQuestion(scene)
            #expect(question["taskIdentifier"].int == number && question["deadline"].string != nil, "\(question)")
            let event = try await scene.event("asks") { $0["taskIdentifier"].int == number }
            #expect(event["type"] == "task.willBeginDelayedRequest")
            try await receiver.waitForDelivery()
            expect(try await answer(scene, question, reply), 200)
            let task = try await scene.completed(number)
            #expect(task["outcome"] == outcome, "\(task)")
            if let text { #expect(try await scene.content(number).text == text) }
        }
        #expect(scene.origin.requests("/old").count == 1)
        #expect(scene.origin.requests("/new").first?.fields["Authorization"] == "Bearer fresh")
        #expect(receiver.deliveries.first?.json["data"]["reasons"] == ["delayedRequestReady"])
        expectSound(try await scene.events())
    }
}

/// Many downloads behind one 401.
@Suite struct SharedQuestionTests {
    private static let credential: JSON = ["user": "u", "password": "p"]
    private static let guarded: [Misbehaviour] = [
        .demand(
            authorization: "Basic " + Base64Text.encode(Array("u:p".utf8)), challenge: "Basic realm=\"the realm\"")
    ]

    @Test func `Many downloads behind one 401 share one question, and one answer serves them all`() async throws {
        let count = 300
        let scene = try await Scene()
        let receiver = try Receiver()
        try await scene.launches(to: receiver)
        for index in 0..<count { scene.origin.serve("/\(index)", .text("\(index)"), always: Self.guarded) }
        let tasks = (0..<count).map { scene.downloadOf("/\($0)") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
        let question = try await eventually("all wait for one question") { () -> JSON? in
            let open = try await scene.api.get("/v1/questions?session=s").json["items"].array ?? []
            try #require(open.count <= 1, "\(open.count) questions")
            return open.first { $0["taskCount"].int == count }
        }
        let event = try #require(try await scene.events().last)
        #expect(try await scene.events().count == 1)
        #expect(event["data"]["taskCount"].int == count && event["taskIdentifier"] == question["taskIdentifier"])
        let waiting = try await scene.api.get("/v1/sessions/s/tasks?limit=1000").json["items"].array ?? []
        #expect(waiting.count == count)
        #expect(waiting.allSatisfy { $0["waitingFor"][0]["questionId"] == question["questionId"] })

        // More than the first batch resumes after a kill.
        let answer: JSON = ["disposition": "useCredential", "credential": Self.credential]
        let path = "/v1/questions/\(question["questionId"].string ?? "")/answer"
        expect(try await scene.api.post(path, answer), 200)
        try await scene.service.restart()
        expectProblem(try await scene.api.post(path, answer), 409, "question-answered")
        try await eventually("all succeed", within: .seconds(120)) {
            try await scene.session()["taskCounts"]["succeeded"].int == count
        }
        let events = try await scene.events()
        #expect(events.count { $0["type"] == "task.didReceiveChallenge" } == 1)
        expectSound(events)
    }
}
