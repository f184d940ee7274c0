import Testing
import Wire

private let time = "2026-12-01T00:00:00.000Z"
private let digest = ContentDigest(algorithm: .sha256, value: String(repeating: "ab", count: 32))
private let failure = TaskError(
    code: -1001, name: "timedOut", localizedDescription: "It took too long.", failingURL: "http://h/", policy: "egress",
    underlying: TaskError.Underlying(domain: "curl", code: 28, message: "Timeout"))
private let response = TaskResponse(
    statusCode: 200, headers: ["ETag": "\"a\""], mimeType: "text/plain", expectedContentLength: 3,
    suggestedFilename: "a.txt", url: "http://h/")
private let space = ProtectionSpace(
    host: "h", port: 443, protocol: "https", realm: "r", authenticationMethod: .basic, isProxy: false)

private func text(_ shape: some JSONWritable) -> String { String(decoding: shape.jsonBytes, as: UTF8.self) }

private func checkRoundTrip<Shape: JSONReadable & JSONWritable & Equatable>(_ shape: Shape) throws {
    let tolerant = try Shape(parsing: shape.jsonBytes, .tolerant)
    #expect(tolerant == shape)
    // Strict reading finds a member that is written but not read.
    let strict = try Shape(parsing: shape.jsonBytes, .strict)
    #expect(strict == shape)
}

@Suite struct ShapeTests {
    @Test func `sessions come back as they went`() throws {
        var configuration = SessionConfiguration()
        configuration.isDiscretionary = true
        configuration.timeoutIntervalForRequest = 1.5
        configuration.httpAdditionalHeaders = ["X": "y"]
        configuration.pinnedPublicKeys = [
            SessionConfiguration.HostPins(
                host: "h", pins: ["sha256/" + Base64.encode([UInt8](repeating: 1, count: 32))])
        ]
        configuration.proxy = Proxy(type: .socks5h, host: "p", port: 1080, user: "u", password: "s")
        configuration.retryPolicy = .custom(RetryPolicy.Settings(statusCodes: [500], maximumAttempts: 3))
        configuration.bandwidthLimit = 1000
        try checkRoundTrip(configuration)
        try checkRoundTrip(SessionConfiguration())
        try checkRoundTrip(
            SessionCreation(identifier: "com.example.bg", configuration: configuration, sessionDescription: "d"))
        try checkRoundTrip(SessionPut(configuration: configuration, sessionDescription: .clear))
        try checkRoundTrip(SessionChange(sessionDescription: .set("d"), bandwidthLimit: .clear))

        var session = Session(identifier: "com.example.bg", createdAt: time)
        session.configuration = configuration.redacted()
        session.attachment = Session.Attached(kind: "lease", expiresAt: time)
        session.launch = Launch(launchId: "lnch_1", kind: "session.handleEvents", createdAt: time)
        session.taskCounts.outcomes.httpError = 4
        try checkRoundTrip(session)
    }

    @Test func `secrets do not stand in answers`() {
        var session = Session(identifier: "s", createdAt: time)
        session.configuration.proxy = Proxy(type: .http, host: "p", port: 1, user: "u", password: "hidden")
        session.configuration.httpAdditionalHeaders = ["authorization": "hidden", "Accept": "shown"]
        #expect(!text(session).contains("hidden") && text(session).contains("shown"))
        let request = TransferRequest(
            url: "http://h/", method: "GET",
            headers: [
                "Cookie": "hidden", "X-Api-Key": "hidden", "X-Auth-Token": "hidden", "X-Mine": "hidden", "A": "shown",
            ],
            sensitiveHeaders: ["x-mine"])
        var task = SessionTask(
            taskIdentifier: 1, kind: .download, state: .running, originalRequest: request, createdAt: time, revision: 1)
        task.currentRequest = request
        #expect(!text(task).contains("hidden") && text(task).contains("shown"))
    }

    @Test func `configurations are effective as they are read`() throws {
        #expect(try SessionConfiguration(parsing: Array("{}".utf8)) == SessionConfiguration())
        let expected =
            #"{"isDiscretionary":false,"sessionSendsLaunchEvents":true,"timeoutIntervalForRequest":60,"#
            + #""timeoutIntervalForResource":604800,"httpMaximumConnectionsPerHost":6,"httpAdditionalHeaders":{},"#
            + #""httpShouldSetCookies":true,"httpCookieAcceptPolicy":"onlyFromMainDocumentDomain","#
            + #""allowsCellularAccess":true,"allowsExpensiveNetworkAccess":true,"allowsConstrainedNetworkAccess":true,"#
            + #""waitsForConnectivity":true,"tlsMinimumSupportedProtocolVersion":"1.2","requiresSecureTransport":false,"#
            + #""pinnedPublicKeys":{},"proxy":null,"authenticationChallenges":"ask","networkServiceType":"default","#
            + #""retryPolicy":"robust","bandwidthLimit":null,"resumableUploads":"auto"}"#
        #expect(text(SessionConfiguration()) == expected)
    }

    @Test(arguments: [
        (#"{"timeoutIntervalForRequest":0}"#, "/timeoutIntervalForRequest invalid-value"),
        (#"{"timeoutIntervalForResource":-1}"#, "/timeoutIntervalForResource invalid-value"),
        (#"{"timeoutIntervalForResource":1e300}"#, "/timeoutIntervalForResource invalid-value"),
        (#"{"httpMaximumConnectionsPerHost":0}"#, "/httpMaximumConnectionsPerHost invalid-value"),
        (#"{"httpAdditionalHeaders":{"Host":"x"}}"#, "/httpAdditionalHeaders/Host invalid-value"),
        (#"{"httpCookieAcceptPolicy":"some"}"#, "/httpCookieAcceptPolicy invalid-value"),
        (#"{"tlsMinimumSupportedProtocolVersion":1.2}"#, "/tlsMinimumSupportedProtocolVersion invalid-value"),
        (#"{"tlsMinimumSupportedProtocolVersion":"1.1"}"#, "/tlsMinimumSupportedProtocolVersion invalid-value"),
        (#"{"pinnedPublicKeys":{"h":[]}}"#, "/pinnedPublicKeys/h invalid-value"),
        (#"{"pinnedPublicKeys":{"h":["sha256/AAAA"]}}"#, "/pinnedPublicKeys/h/0 invalid-value"),
        (#"{"proxy":{"type":"ftp","host":"h","port":1}}"#, "/proxy/type invalid-value"),
        (#"{"proxy":{"type":"http","host":"h/","port":1}}"#, "/proxy/host invalid-value"),
        (#"{"proxy":{"type":"http","host":"h","port":65536}}"#, "/proxy/port invalid-value"),
        (#"{"retryPolicy":"sturdy"}"#, "/retryPolicy invalid-value"),
        (#"{"retryPolicy":null}"#, "/retryPolicy invalid-value"),
        (#"{"retryPolicy":{"statusCodes":[200]}}"#, "/retryPolicy/statusCodes/0 invalid-value"),
        (#"{"retryPolicy":{"statusCodes":[500,500]}}"#, "/retryPolicy/statusCodes invalid-value"),
        (#"{"retryPolicy":{"maximumAttempts":0}}"#, "/retryPolicy/maximumAttempts invalid-value"),
        (#"{"bandwidthLimit":0}"#, "/bandwidthLimit invalid-value"),
        (#"{"isDiscretionary":null}"#, "/isDiscretionary invalid-value"),
        (#"{"HTTPShouldSetCookies":true}"#, "/HTTPShouldSetCookies unknown-member"),
    ])
    func `wrong members of a configuration are told`(_ json: String, _ expected: String) {
        #expect(faults(SessionConfiguration.self, json) == [expected])
    }

    @Test func `tasks come back as they went`() throws {
        let request = TransferRequest(url: "http://h/", method: "GET", headers: ["A": "b"], sensitiveHeaders: ["X"])
        var task = SessionTask(
            taskIdentifier: 3, kind: .download, state: .completed, originalRequest: request, createdAt: time,
            revision: 9)
        try checkRoundTrip(task)
        task.phase = .retryWait
        task.waitingFor = [WaitingReason(kind: "retry", detail: "It waits.", until: time)]
        task.outcome = .httpError
        task.currentRequest = request
        task.redirects = [Redirect(statusCode: 302, from: "http://g/", to: "http://h/")]
        task.response = response
        task.progress = TaskProgress(fractionCompleted: 0.5, throughput: 10, estimatedTimeRemaining: 2.5)
        task.attempts = TaskAttempts(
            count: 2, last: TaskAttempts.Attempt(startedAt: time, endedAt: time, statusCode: 503, error: failure),
            nextAt: time)
        task.error = failure
        task.content = Content(length: 3, digest: digest, expiresAt: time)
        task.startedAt = time
        task.completedAt = time
        task.clientTaskId = "a"
        task.group = "g"
        task.taskDescription = "d"
        task.metadata = ["z": "1", "a": "2"]
        task.body = .id("body_1")
        task.earliestBeginDate = time
        task.confirmBeforeStart = true
        task.countOfBytesClientExpectsToSend = 1
        task.countOfBytesClientExpectsToReceive = 2
        task.expectedDigest = digest
        task.maximumContentLength = 5
        task.ifNoneMatch = "\"e\""
        task.acceptableStatusCodes = ["204"]
        task.failOnHTTPError = true
        task.destination = Destination(root: "r", path: "p")
        task.retryOf = 1
        task.existing = true
        try checkRoundTrip(task)
        try checkRoundTrip(Batch(created: 1, firstTaskIdentifier: 3, lastTaskIdentifier: 3, items: [task]))
        try checkRoundTrip(Batch(created: 0, firstTaskIdentifier: nil, lastTaskIdentifier: nil))
        try checkRoundTrip(Page(items: [task], nextCursor: "c"))
        try checkRoundTrip(LineResult(taskIdentifier: 3, clientTaskId: "a", existing: true))
        try checkRoundTrip(LineResult(problem: Problem(.invalidValue, "No.")))
        try checkRoundTrip(TaskCancellation(byProducingResumeData: true))
        try checkRoundTrip(ResumeDataAnswer(resumeData: nil, notResumableReason: "weak"))
        try checkRoundTrip(TaskSelection(state: .running, outcome: .failed, group: "g"))
        try checkRoundTrip(SelectionAnswer(matched: 2, changed: 1))
        try checkRoundTrip(StoredBody(id: "body_1", length: 3, digest: digest, expiresAt: time))
        try checkRoundTrip(
            TaskChange(
                priority: 1, taskDescription: .set("d"), metadata: .clear, earliestBeginDate: .set(time),
                request: RequestChange(url: "http://h/", headers: ["A": "b"], sensitiveHeaders: [])))
    }

    @Test func `events come back as they went`() throws {
        let data = EventData.DidComplete(outcome: .failed, error: failure, response: response)
        let event = Event(
            seq: 4, type: .taskDidComplete, occurredAt: time, sessionIdentifier: "s", taskIdentifier: 3,
            clientTaskId: "a",
            group: "g", data: JSONText(data))
        try checkRoundTrip(event)
        #expect(try event.data.read(EventData.DidComplete.self) == data)
        try checkRoundTrip(EventPage(items: [event], lastSeq: 4, acknowledgedSeq: 1, finished: true))
        #expect(
            text(Event(seq: nil, type: .taskIsWaitingForConnectivity, occurredAt: time, sessionIdentifier: "s"))
                == #"{"seq":null,"type":"task.isWaitingForConnectivity","occurredAt":"2026-12-01T00:00:00.000Z","#
                + #""sessionIdentifier":"s","data":{}}"#)
        try checkRoundTrip(EventData.DidCreate(kind: .upload, url: "http://h/"))
        try checkRoundTrip(EventData.DidSendBodyData(bytesSent: 1, totalBytesSent: 2, totalBytesExpectedToSend: nil))
        try checkRoundTrip(EventData.DidWriteData(bytesWritten: 1, totalBytesWritten: 2, totalBytesExpectedToWrite: 3))
        try checkRoundTrip(EventData.WillRetry(attempt: 1, error: failure, nextAt: time, offset: 7))
        try checkRoundTrip(EventData.DidResumeAtOffset(fileOffset: 0, expectedTotalBytes: nil, cause: "changed"))
        try checkRoundTrip(EventData.DidFinishDownloading(contentURL: "http://h/c", length: 3, digest: digest))
        try checkRoundTrip(EventData.DidFinishEvents(launchId: "lnch_1"))
        try checkRoundTrip(EventData.DidBecomeInvalid(error: nil))
        try checkRoundTrip(
            TaskMetrics(
                taskInterval: TaskInterval(start: time, duration: 1.25), redirectCount: 1,
                transactionMetrics: [TransactionMetrics(url: "http://h/", statusCode: 200, fetchStartDate: time)]))
        try checkRoundTrip(EventAck(through: 4, epoch: 1))
        try checkRoundTrip(AttachmentRequest(ttl: 60, launchId: "lnch_1", takeover: true, epoch: 2))
        try checkRoundTrip(Attachment(epoch: 1, expiresAt: time, acknowledgedSeq: 0, lastSeq: 4))
        #expect(
            faults(EventAck.self, #"{"through":-1,"epoch":0}"#) == ["/through invalid-value", "/epoch invalid-value"])
        #expect(faults(AttachmentRequest.self, #"{"ttl":4}"#) == ["/ttl invalid-value"])
    }

    @Test func `questions and credentials come back as they went`() throws {
        try checkRoundTrip(space)
        let challenge = AuthenticationChallenge(
            questionId: "q_1", protectionSpace: space, previousFailureCount: 0,
            proposedCredential: ProposedCredential(user: "u"), failureResponse: response, deadline: time)
        try checkRoundTrip(challenge)
        let request = TransferRequest(url: "http://h/", method: "GET")
        try checkRoundTrip(DelayedRequest(questionId: "q_1", request: request, deadline: time))
        try checkRoundTrip(
            Question(
                questionId: "q_1", type: .taskDidReceiveChallenge, state: .answered, sessionIdentifier: "s",
                taskIdentifier: 1, protectionSpace: space, previousFailureCount: 1, failureResponse: response,
                disposition: .useCredential, deadline: time, createdAt: time, answeredAt: time))
        let pem = "-----BEGIN X-----\n"
        let pin = "sha256/" + Base64.encode([UInt8](repeating: 1, count: 32))
        let secrets: [Credential.Secret] = [
            .password(user: "u", password: "p"), .token("t"), .certificate(pem, key: pem), .trustPublicKey(pin),
        ]
        for secret in secrets {
            try checkRoundTrip(Answer.useCredential(Credential(secret, persistence: .forSession)))
            try checkRoundTrip(CredentialCreation(protectionSpace: space, credential: Credential(secret)))
        }
        try checkRoundTrip(Answer.useNewRequest(request))
        try checkRoundTrip(Answer(.cancel))
        try checkRoundTrip(
            StoredCredential(credentialIdentifier: "c", protectionSpace: space, user: "u", createdAt: time))
    }

    @Test(arguments: [
        (#"{}"#, ["/disposition invalid-value"]), (#"{"disposition":"maybe"}"#, ["/disposition invalid-value"]),
        (#"{"disposition":"useCredential"}"#, ["/credential invalid-value"]),
        (#"{"disposition":"cancel","credential":{"token":"t"}}"#, ["/credential invalid-value"]),
        (#"{"disposition":"useNewRequest"}"#, ["/request invalid-value"]),
        (#"{"disposition":"useCredential","credential":{}}"#, ["/credential invalid-value"]),
        (#"{"disposition":"useCredential","credential":{"token":"t","user":"u"}}"#, ["/credential invalid-value"]),
        (#"{"disposition":"useCredential","credential":{"user":"u"}}"#, ["/credential/password invalid-value"]),
        (
            #"{"disposition":"useCredential","credential":{"user":"u:v","password":""}}"#,
            ["/credential/user invalid-value"]
        ),
        (#"{"disposition":"useCredential","credential":{"token":"a b"}}"#, ["/credential/token invalid-value"]),
        (
            #"{"disposition":"useCredential","credential":{"token":"t","persistence":"ever"}}"#,
            ["/credential/persistence invalid-value"]
        ),
    ])
    func `answers hold together`(_ json: String, _ expected: [String]) {
        #expect(faults(Answer.self, json) == expected)
    }

    @Test func `launches and webhooks come back as they went`() throws {
        var launch = Launch(launchId: "lnch_1", kind: "session.handleEvents", state: .launched, createdAt: time)
        launch.sessionIdentifier = "s"
        launch.reasons = ["tasksFinished"]
        launch.lastSeq = 4
        launch.attempts = [LaunchAttempt(number: 1, startedAt: time, duration: 0.5, statusCode: 500, excerpt: "x")]
        try checkRoundTrip(launch)
        try checkRoundTrip(LaunchCompletion(through: 4, epoch: 1))
        try checkRoundTrip(LaunchCompletion(result: .newData))
        #expect(faults(LaunchCompletion.self, #"{"result":"noData","through":1}"#) == ["/result invalid-value"])

        let event = Event(seq: 1, type: .sessionDidBecomeInvalid, occurredAt: time, sessionIdentifier: "s")
        var counts = OutcomeCounts()
        counts.succeeded = 6
        let data = WebhookPayload.HandleEvents(
            launchId: "lnch_1", app: "com.example.app", sessionIdentifier: "com.example.bg", reasons: ["tasksFinished"],
            lastSeq: 118, pendingEvents: 21, taskCounts: counts, eventsURL: "http://h/e", completionURL: "http://h/c",
            expiresAt: time, events: [event])
        let payload = WebhookPayload(timestamp: time, data)
        try checkRoundTrip(payload)
        #expect(payload.type == "session.handleEvents")
        #expect(try payload.data.read(WebhookPayload.HandleEvents.self) == data)
        let fetch = WebhookPayload.PerformFetch(
            launchId: "lnch_2", app: "a", deadline: time, previousResult: nil, completionURL: "http://h/c")
        #expect(
            text(WebhookPayload(timestamp: time, fetch))
                == #"{"type":"app.performFetch","timestamp":"2026-12-01T00:00:00.000Z","data":{"launchId":"lnch_2","app":"a","#
                + #""deadline":"2026-12-01T00:00:00.000Z","previousResult":null,"completionURL":"http://h/c"}}"#)
        try checkRoundTrip(WebhookPayload.RefreshStatusDidChange(app: "a", backgroundRefreshStatus: .denied))
        try checkRoundTrip(WebhookPayload.Ping(app: "a"))
    }

    @Test func `apps and keys come back as they went`() throws {
        let webhook = Webhook(
            url: "https://h/", state: .paused, disabledReason: nil, includeEvents: 3, launchDeadline: 60,
            secret: "whsec_x")
        try checkRoundTrip(
            App(
                identifier: "com.example.app", state: "active", webhook: webhook, backgroundRefreshStatus: .available,
                limits: AppLimits(tasks: 5, storedBytes: nil), usage: AppUsage(tasks: 1, storedBytes: 2),
                createdAt: time,
                revision: 3, apiKey: "usd_x"))
        let change = WebhookChange(url: .set("https://h/"), state: .enabled, includeEvents: 100, launchDeadline: 5)
        try checkRoundTrip(
            AppCreation(
                identifier: "a", webhook: change, backgroundRefreshStatus: .denied,
                limits: AppLimitsChange(tasks: 5, storedBytes: .clear)))
        try checkRoundTrip(AppChange(webhook: WebhookChange(url: .clear), backgroundRefreshStatus: .restricted))
        try checkRoundTrip(OwnAppChange(webhook: change))
        try checkRoundTrip(AppKey(keyIdentifier: "k", apiKey: "usd_k_s", scopes: [.events, .app], expiresAt: time))
        try checkRoundTrip(AppKeyCreation(scopes: [.sessionsRead], expiresAt: time))
        try checkRoundTrip(SecretRotation(gracePeriod: 0))
        try checkRoundTrip(RotatedSecret(secret: "whsec_x", previousSecretExpiresAt: time))
        #expect(try AppKeyCreation(parsing: Array("{}".utf8)).scopes == Scope.known)
        #expect(faults(AppKeyCreation.self, #"{"scopes":["root"]}"#) == ["/scopes/0 invalid-value"])
        #expect(faults(AppKeyCreation.self, #"{"scopes":["app","app"]}"#) == ["/scopes invalid-value"])
        #expect(faults(AppCreation.self, #"{"identifier":"a/b"}"#) == ["/identifier invalid-value"])
        #expect(
            faults(OwnAppChange.self, #"{"backgroundRefreshStatus":"denied"}"#) == [
                "/backgroundRefreshStatus unknown-member"
            ])
        #expect(
            faults(OwnAppChange.self, #"{"webhook":{"launchDeadline":4,"includeEvents":101,"url":"h"}}"#) == [
                "/webhook/url invalid-value", "/webhook/includeEvents invalid-value",
                "/webhook/launchDeadline invalid-value",
            ])
    }

    @Test func `refresh and conditions come back as they went`() throws {
        for interval: FetchInterval in [.never, .minimum, .seconds(900), .seconds(1800.5)] {
            try checkRoundTrip(BackgroundRefreshChange(minimumBackgroundFetchInterval: interval))
        }
        for wrong in ["899", "\"often\"", "null", "true", "1e300"] {
            let json = #"{"minimumBackgroundFetchInterval":\#(wrong)}"#
            #expect(faults(BackgroundRefreshChange.self, json) == ["/minimumBackgroundFetchInterval invalid-value"])
        }
        try checkRoundTrip(
            BackgroundRefresh(
                minimumBackgroundFetchInterval: .minimum, backgroundRefreshStatus: .available, nextFetchAt: time,
                why: "It is due.", history: [PastFetch(launchId: "lnch_1", at: time, duration: 1, result: .noData)]))
        #expect(try Conditions(parsing: Array("{}".utf8)) == Conditions())
        let window = Conditions.Window(days: [.monday, .sunday], from: "22:00", to: "06:00", bandwidthLimit: 1000)
        try checkRoundTrip(
            Conditions(
                network: Conditions.Network(cellular: true), power: Conditions.Power(external: false), maximumLoad: 2,
                windows: [window], backgroundRefreshStatus: .denied))
        #expect(
            faults(Conditions.self, #"{"windows":[{"days":["Monday"],"from":"24:00","to":"24:01"}]}"#) == [
                "/windows/0/days/0 invalid-value", "/windows/0/from invalid-value", "/windows/0/to invalid-value",
            ])
    }

    @Test func `problems say what clients switch on`() throws {
        let problem = Problem(
            .eventsExpired, "Events before 7 are gone.", instance: "/v1/x",
            errors: [Problem.Entry(pointer: "/a", detail: "d")],
            oldestSeq: 7)
        try checkRoundTrip(problem)
        #expect(
            text(problem)
                == #"{"type":"https://urlsessiond.dev/problems/events-expired","title":"Events have expired","status":410,"#
                + #""detail":"Events before 7 are gone.","instance":"/v1/x","code":"events-expired","#
                + #""errors":[{"pointer":"/a","detail":"d"}],"oldestSeq":7}"#)
        #expect(ProblemCode.known.count == 43)
        #expect(ProblemCode.known.allSatisfy { $0.title != $0.rawValue && (400...507).contains($0.status) })
    }

    @Test func `a body that cannot be read becomes a problem`() {
        func problem(_ text: String) -> Problem? {
            do {
                _ = try EventAck(parsing: Array(text.utf8))
                return nil
            } catch { return Problem(error) }
        }
        #expect(problem("{")?.status == 400)
        #expect(problem("{")?.code == .malformedJSON)
        #expect(problem("[]")?.status == 422)
        #expect(problem("[]")?.code == .invalidValue)
        #expect(problem(#"{"through":1,"x":2}"#)?.code == .unknownMember)
        #expect(problem(#"{"through":1,"through":2}"#)?.code == .duplicateMember)
        #expect(problem(#"{"through":"1"}"#)?.errors.map(\.pointer) == ["/through"])
    }
}
