import Core
import Formats
import Testing
import Wire

@testable import WireMapping

typealias WireJSON = Wire.JSON

@Suite struct TaskMappingTests {
    private static let members = [
        "taskIdentifier", "kind", "state", "phase", "waitingFor", "outcome", "originalRequest", "currentRequest",
        "redirects", "response", "priority", "countOfBytesReceived", "countOfBytesSent",
        "countOfBytesFetchedTwice", "countOfBytesExpectedToReceive",
        "countOfBytesExpectedToSend", "progress", "attempts", "error", "cacheStatus", "content", "createdAt",
        "startedAt",
        "completedAt", "revision", "clientTaskId", "group", "taskDescription", "metadata", "earliestBeginDate",
        "confirmBeforeStart", "expectedDigest", "maximumContentLength", "ifNoneMatch", "acceptableStatusCodes",
        "failOnHTTPError", "destination", "retryOf", "segments", "mirrors", "pieces", "segmentStates",
    ]

    private func json(_ value: some JSONWritable) throws -> WireJSON { try WireJSON.parse(value.jsonBytes) }

    @Test func `A task is shown with every member, finished or not`() throws {
        for record in [Records.task(), Records.completed] {
            let shown = try json(SessionTask(record))
            for member in Self.members { #expect(shown[member] != nil, "\(member)") }
        }
    }

    @Test func `No secret is shown`() throws {
        let text = String(decoding: SessionTask(Records.completed).jsonBytes, as: UTF8.self)
        #expect(!text.contains("hush"))
        let shown = try json(SessionTask(Records.task()))
        let placeholder = WireJSON.string(SecretHeaders.placeholder)
        for request in ["originalRequest", "currentRequest"] {
            #expect(shown[request]?["headers"]?["Authorization"] == placeholder)
            #expect(shown[request]?["headers"]?["X-Mine"] == placeholder)
            #expect(shown[request]?["headers"]?["Accept"] == "*/*")
        }
    }

    @Test func `A finished task shows its last request and its response`() throws {
        let shown = try json(SessionTask(Records.completed))
        #expect(shown["phase"] == .null)
        #expect(shown["outcome"] == "succeeded")
        #expect(shown["redirects"]?[0]?["from"] == "https://a.example/x")
        #expect(shown["redirects"]?[1]?["from"] == "https://a.example/z")
        #expect(shown["redirects"]?[1]?["to"] == "https://b.example/y")
        #expect(shown["currentRequest"]?["url"] == "https://b.example/y")
        // Another origin: the secrets were not sent there.
        #expect(shown["currentRequest"]?["headers"]?["Authorization"] == nil)
        #expect(shown["response"]?["headers"]?["Vary"] == "a, b")
        #expect(shown["countOfBytesReceived"] == 1000)
        #expect(shown["progress"]?["fractionCompleted"]?.numberValue == 1)
        #expect(shown["attempts"]?["count"] == 2)
        #expect(shown["content"]?["digest"]?["algorithm"] == "sha-256")
        #expect(shown["acceptableStatusCodes"] == ["200-299", "404"])
        #expect(Array(shown["metadata"]?.members ?? []).map(\.name) == ["a", "b"])
        #expect(shown["createdAt"] == "2027-01-15T08:00:00.000Z")
    }

    @Test func `An expired content is not shown`() throws {
        var record = Records.completed
        record.content?.isExpired = true
        #expect(try json(SessionTask(record))["content"] == .null)
    }

    @Test func `The phase follows stage, transfer and conditions`() {
        func phase(_ stage: TaskLife.Stage, _ live: LiveState = LiveState()) -> TaskPhase? {
            SessionTask(Records.task(stage), live).phase
        }
        func sample(_ phase: LiveState.Phase) -> LiveState {
            var live = LiveState()
            live.sample = LiveState.Sample(phase: phase, received: 10, sent: 0, expected: 40)
            return live
        }
        #expect(SessionTask(Records.task(.suspended(remaining: .seconds(5), question: nil))).phase == nil)
        let until = Records.time
        #expect(phase(.delayed(until: until)) == .delayed)
        #expect(phase(.awaitingAnswer(QuestionID(1, publicId: "q"))) == .awaitingAnswer)
        #expect(phase(.retryWait(until: until)) == .retryWait)
        #expect(phase(.waitingForConnectivity(until: until)) == .waitingForConnectivity)
        #expect(phase(.waitingForDisk(needed: 1, kept: 1, notBefore: until)) == .queued)
        #expect(phase(.queued) == .queued)
        var waiting = LiveState()
        waiting.waiting = [Core.WaitingReason(kind: .capacity, detail: "full")]
        #expect(phase(.queued, waiting) == .queued)
        waiting.waiting = [Core.WaitingReason(kind: .power, detail: "no power", until: Records.time)]
        #expect(phase(.queued, waiting) == .deferred)
        #expect(phase(.active) == .connecting)
        #expect(phase(.active, sample(.sending)) == .sending)
        #expect(phase(.active, sample(.receiving)) == .receiving)
        #expect(phase(.active, sample(.finalizing)) == .finalizing)
    }

    @Test func `Without a transfer here, the phase follows from the stored progress`() {
        func phase(
            _ kind: Core.TaskKind, _ progress: Core.TaskProgress, _ live: LiveState = LiveState()
        ) -> TaskPhase? {
            let specification = Records.specification(kind: kind)
            return SessionTask(Records.task(.active, progress: progress, specification: specification), live).phase
        }
        var received = Core.TaskProgress()
        received.kept = .file(ResumePoint { $0.offset = 3 }, source: 0)
        var sent = Core.TaskProgress()
        sent.countOfBytesSent = 3
        #expect(phase(.download, received) == .receiving && phase(.download, Core.TaskProgress()) == .connecting)
        #expect(phase(.upload, sent) == .sending && phase(.upload, Core.TaskProgress()) == .connecting)
        var live = LiveState()
        live.sample = LiveState.Sample(phase: .connecting, received: 3, sent: 3, expected: nil)
        #expect(phase(.download, received, live) == .connecting && phase(.upload, sent, live) == .connecting)
    }

    @Test func `Progress is that of the running transfer`() throws {
        var live = LiveState()
        live.sample = LiveState.Sample(phase: .receiving, received: 10, sent: 0, expected: 40)
        live.throughput = 5
        let shown = SessionTask(Records.task(.active), live)
        #expect(shown.countOfBytesReceived == 10)
        #expect(shown.countOfBytesExpectedToReceive == 40)
        #expect(shown.progress.fractionCompleted == 0.25)
        #expect(shown.progress.throughput == 5)
        #expect(shown.progress.estimatedTimeRemaining == 6)
        #expect(shown.attempts.count == 1)
        live.sample?.expected = nil
        let guessed = SessionTask(Records.task(.active), live)
        #expect(guessed.countOfBytesExpectedToReceive == nil)
        #expect(guessed.progress.fractionCompleted == 0.005, "of what the client expects")
    }

    @Test func `A running task shows the response of its transfer`() {
        var live = LiveState()
        #expect(SessionTask(Records.task(.active), live).response == nil)
        live.response = Records.response
        #expect(SessionTask(Records.task(.active), live).response?.mimeType == "text/plain")
        live.response?.mimeType = "text/html"
        #expect(SessionTask(Records.completed, live).response?.mimeType == "text/plain", "the result is final")
    }

    @Test func `A task shows the bytes that it fetched twice`() {
        var progress = Core.TaskProgress()
        progress.noteFetchedTwice(300)
        progress.noteFetchedTwice(20)
        #expect(SessionTask(Records.task(.active, progress: progress)).countOfBytesFetchedTwice == 320)
    }

    @Test func `A waiting task shows its next attempt and the last error`() throws {
        var progress = Core.TaskProgress()
        progress.attempts.attempts = 1
        progress.kept = .file(ResumePoint { $0.offset = 3 }, source: 0)
        progress.lastAttempt = AttemptRecord(
            number: 1, startedAt: Records.time, endedAt: Records.time, offset: 0, statusCode: nil,
            error: Core.TaskError(
                .networkConnectionLost, failingURL: "https://a.example/x",
                underlying: .init(domain: "curl", code: "56", message: "reset")))
        let shown = try json(
            SessionTask(Records.task(.retryWait(until: Records.time + .seconds(5)), progress: progress)))
        #expect(shown["attempts"]?["nextAt"] == "2027-01-15T08:00:05.000Z")
        #expect(shown["error"] == .null)
        #expect(shown["countOfBytesReceived"] == 3)
        let error = shown["attempts"]?["last"]?["error"]
        #expect(error?["domain"] == "NSURLErrorDomain")
        #expect(error?["code"] == -1005)
        #expect(error?["name"] == "networkConnectionLost")
        #expect(error?["underlying"]?["code"] == 56)
    }

    @Test func `Codes other than libcurl's have names`() throws {
        let error = Core.TaskError(
            .badServerResponse, underlying: .init(domain: "urlsessiond", code: "digest-mismatch", message: "m"),
            backgroundTaskCancelledReason: 1)
        let shown = try json(Wire.TaskError(error))
        #expect(shown["underlying"]?["code"] == "digest-mismatch")
        #expect(shown["backgroundTaskCancelledReason"] == 1)
        #expect(shown["policy"] == nil)
    }

    @Test func `An upload shows its body and its length`() throws {
        var specification = Records.specification(kind: .upload)
        specification.body = "body_1"
        specification.bodyLength = 50
        let shown = try json(SessionTask(Records.task(specification: specification)))
        #expect(shown["body"]?["id"] == "body_1")
        #expect(shown["originalRequest"]?["body"] == nil)
        #expect(shown["countOfBytesExpectedToSend"] == 50)
    }
}

@Suite struct TaskOrderMappingTests {
    @Test func `A value of a sensitive header stays secret whatever names a change lists`() throws {
        let request = Core.TransferRequest(
            url: "https://a.example/", method: "GET", headers: HTTPFields(["X-Key": "1", "X-Other": "2"]),
            sensitiveHeaders: ["x-key", "X-Gone"])
        func names(_ change: WireJSON) throws -> [String] {
            request.applying(try RequestChange(from: change)).sensitiveHeaders
        }
        #expect(try names(["sensitiveHeaders": []]) == ["x-key"])
        #expect(try names(["sensitiveHeaders": ["X-KEY", "X-Other"]]) == ["X-KEY", "X-Other"])
        #expect(try names(["headers": ["X-Key": "3"], "sensitiveHeaders": []]) == [])
        #expect(try names(["url": "https://b.example/"]) == ["x-key", "X-Gone"])
    }

    private func order(_ json: WireJSON) throws -> TaskOrder {
        TaskOrder(try TaskCreation(from: json), traceparent: "00-t")
    }

    @Test func `A download keeps every member of its order`() throws {
        let order = try order([
            "kind": "download",
            "request": ["url": "https://a.example/x", "headers": ["A": "1"], "sensitiveHeaders": ["A"]],
            "state": "suspended", "clientTaskId": "c", "metadata": ["k": "v"], "priority": 0.75,
            "earliestBeginDate": "2027-01-15T08:00:00Z", "confirmBeforeStart": true,
            "expectedDigest": ["algorithm": "md5", "value": "1B2M2Y8AsgTpgAmY7PhCfg=="],
            "acceptableStatusCodes": ["200-299", "404"], "failOnHTTPError": true,
            "destination": ["root": "r", "path": "p"],
        ])
        #expect(order.isSuspended)
        let specification = order.specification
        #expect(specification.request.method == "GET")
        #expect(specification.request.headers["a"] == "1")
        #expect(specification.request.sensitiveHeaders == ["A"])
        #expect(specification.metadata == ["k": "v"])
        #expect(specification.earliestBeginDate == Records.time)
        #expect(specification.expectedDigest?.value == "d41d8cd98f00b204e9800998ecf8427e")
        #expect(specification.acceptableStatusCodes == [StatusRange(200, 299), StatusRange(404, 404)])
        #expect(specification.destination == Core.Destination(root: "r", path: "p", replace: false))
        #expect(specification.traceparent == "00-t")
        #expect(order.body == nil)
    }

    @Test func `Bodies have six forms`() throws {
        func body(_ form: WireJSON) throws -> TaskOrder.Body? {
            try order(["kind": "upload", "request": ["url": "https://a.example/x"], "body": form]).body
        }
        #expect(try body(["id": "body_1"]) == .stored("body_1"))
        #expect(try body(["text": "hé"]) == .bytes(Array("hé".utf8), mediaType: "text/plain; charset=utf-8"))
        #expect(try body(["base64": "AAE="]) == .bytes([0, 1], mediaType: nil))
        #expect(try body(["json": ["a": 1]]) == .bytes(Array("{\"a\":1}".utf8), mediaType: "application/json"))
        #expect(try body(["root": "r", "path": "p"]) == .file(root: "r", path: "p"))
        #expect(try body(["task": 4]) == .content(ofTask: 4))
        let upload = try order([
            "kind": "upload", "request": ["url": "https://a.example/x"], "body": ["text": ""],
        ])
        #expect(upload.specification.request.method == "PUT")
        let post = try order([
            "kind": "download", "request": ["url": "https://a.example/x", "method": "POST", "body": ["text": "q"]],
        ])
        #expect(post.body == .bytes([0x71], mediaType: "text/plain; charset=utf-8"))
    }

    @Test func `A change of the request keeps the omitted members`() throws {
        let task = Records.task()
        let wire = try TaskChange(
            from: ["request": ["url": "https://c.example/"], "taskDescription": nil, "metadata": nil])
        let changes = TaskChanges(wire, of: task)
        #expect(changes.request?.url == "https://c.example/")
        #expect(changes.request?.headers["Authorization"] == "Bearer hush")
        #expect(changes.taskDescription == .some(nil))
        #expect(changes.metadata == [:])
        #expect(changes.earliestBeginDate == nil)
        #expect(changes.priority == nil)
    }
}
