import Testing
import Wire

private let time = "2026-12-01T00:00:00.000Z"
private let digest = ContentDigest(algorithm: .sha256, value: String(repeating: "ab", count: 32))
private let failure = TaskError {
    $0.code = -1001
    $0.name = "timedOut"
    $0.localizedDescription = "It took too long."
    $0.failingURL = "http://h/"
    $0.policy = "egress"
    $0.underlying = TaskError.Underlying {
        $0.domain = "curl"
        $0.code = 28
        $0.message = "Timeout"
    }
}
private let response = TaskResponse {
    $0.statusCode = 200
    $0.headers = ["ETag": "\"a\""]
    $0.mimeType = "text/plain"
    $0.expectedContentLength = 3
    $0.suggestedFilename = "a.txt"
    $0.url = "http://h/"
}
private let space = ProtectionSpace(
    host: "h", port: 443, protocol: "https", realm: "r", authenticationMethod: .basic, isProxy: false)

private func text(_ shape: some JSONWritable) -> String { String(decoding: shape.jsonBytes, as: UTF8.self) }

private func checkRoundTrip<Shape: JSONReadable & JSONWritable & Equatable>(_ shape: Shape) throws {
    let tolerant = try Shape(parsing: shape.jsonBytes, .tolerant)
    #expect(tolerant == shape)
    // Strict reading detects a member that is written but not read.
    let strict = try Shape(parsing: shape.jsonBytes, .strict)
    #expect(strict == shape)
}

@Suite struct ShapeTests {
    @Test func `Sessions survive a round trip`() throws {
        var configuration = SessionConfiguration()
        configuration.isDiscretionary = true
        configuration.timeoutIntervalForRequest = 1.5
        configuration.httpAdditionalHeaders = ["X": "y"]
        configuration.pinnedPublicKeys = [
            SessionConfiguration.HostPins(
                host: "h", pins: ["sha256/" + Base64.encode([UInt8](repeating: 1, count: 32))])
        ]
        configuration.proxy = Proxy(type: .socks5h, host: "p", port: 1080, user: "u", password: "s")
        configuration.retryPolicy = .custom(
            RetryPolicy.Settings {
                $0.statusCodes = [500]
                $0.maximumAttempts = 3
            })
        configuration.bandwidthLimit = 1000
        try checkRoundTrip(configuration)
        try checkRoundTrip(SessionConfiguration())
        try checkRoundTrip(
            SessionCreation {
                $0.identifier = "com.example.bg"
                $0.configuration = configuration
                $0.sessionDescription = "d"
            })
        try checkRoundTrip(
            SessionPut {
                $0.configuration = configuration
                $0.sessionDescription = .clear
            })
        try checkRoundTrip(
            SessionChange {
                $0.sessionDescription = .set("d")
                $0.bandwidthLimit = .clear
            })

        var session = Session {
            $0.identifier = "com.example.bg"
            $0.createdAt = time
        }
        session.configuration = configuration.redacted()
        session.attachment = Session.Attached {
            $0.kind = "lease"
            $0.expiresAt = time
        }
        session.launch = Launch {
            $0.launchId = "lnch_1"
            $0.kind = "session.handleEvents"
            $0.createdAt = time
        }
        session.taskCounts.outcomes.httpError = 4
        try checkRoundTrip(session)
    }

    @Test func `Responses contain no secrets`() {
        var session = Session {
            $0.identifier = "s"
            $0.createdAt = time
        }
        session.configuration.proxy = Proxy(type: .http, host: "p", port: 1, user: "u", password: "hidden")
        session.configuration.httpAdditionalHeaders = ["authorization": "hidden", "Accept": "shown"]
        #expect(!text(session).contains("hidden") && text(session).contains("shown"))
        let request = TransferRequest(
            url: "http://h/", method: "GET",
            headers: [
                "Cookie": "hidden", "X-Api-Key": "hidden", "X-Auth-Token": "hidden", "X-Mine": "hidden", "A": "shown",
            ],
            sensitiveHeaders: ["x-mine"])
        var task = SessionTask {
            $0.taskIdentifier = 1
            $0.kind = .download
            $0.state = .running
            $0.originalRequest = request
            $0.createdAt = time
            $0.revision = 1
        }
        task.currentRequest = request
        #expect(!text(task).contains("hidden") && text(task).contains("shown"))
    }

    @Test func `Configurations are effective after reading`() throws {
        #expect(try SessionConfiguration(parsing: Array("{}".utf8)) == SessionConfiguration())
        let expected =
            #"{"isDiscretionary":false,"sessionSendsLaunchEvents":true,"timeoutIntervalForRequest":60,"#
            + #""timeoutIntervalForResource":604800,"httpMaximumConnectionsPerHost":6,"httpAdditionalHeaders":{},"#
            + #""httpShouldSetCookies":true,"httpCookieAcceptPolicy":"onlyFromMainDocumentDomain","#
            + #""allowsCellularAccess":true,"allowsExpensiveNetworkAccess":true,"allowsConstrainedNetworkAccess":true,"#
            + #""waitsForConnectivity":true,"tlsMinimumSupportedProtocolVersion":"1.2","requiresSecureTransport":false,"#
            + #""pinnedPublicKeys":{},"proxy":null,"authenticationChallenges":"ask","networkServiceType":"default","#
            + #""retryPolicy":"robust","bandwidthLimit":null,"resumableUploads":"auto","stallInterval":3600,"#
            + #""requestCachePolicy":"reloadIgnoringLocalCacheData"}"#
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
        (#"{"proxy":{"type":"http","host":"h:80","port":1}}"#, "/proxy/host invalid-value"),
        (#"{"proxy":{"type":"http","host":"h::80","port":1}}"#, "/proxy/host invalid-value"),
        (#"{"proxy":{"type":"http","host":"h","port":65536}}"#, "/proxy/port invalid-value"),
        (#"{"retryPolicy":"sturdy"}"#, "/retryPolicy invalid-value"),
        (#"{"retryPolicy":null}"#, "/retryPolicy invalid-value"),
        (#"{"retryPolicy":{"statusCodes":[200]}}"#, "/retryPolicy/statusCodes/0 invalid-value"),
        (#"{"retryPolicy":{"statusCodes":[500,500]}}"#, "/retryPolicy/statusCodes invalid-value"),
        (#"{"retryPolicy":{"initialDelay":0.09}}"#, "/retryPolicy/initialDelay invalid-value"),
        (#"{"retryPolicy":{"maximumDelay":0}}"#, "/retryPolicy/maximumDelay invalid-value"),
        (#"{"retryPolicy":{"maximumAttempts":0}}"#, "/retryPolicy/maximumAttempts invalid-value"),
        (#"{"bandwidthLimit":0}"#, "/bandwidthLimit invalid-value"),
        (#"{"isDiscretionary":null}"#, "/isDiscretionary invalid-value"),
        (#"{"HTTPShouldSetCookies":true}"#, "/HTTPShouldSetCookies unknown-member"),
    ])
    func `Invalid members of a configuration are reported`(_ json: String, _ expected: String) {
        #expect(faults(SessionConfiguration.self, json) == [expected])
    }

    @Test func `Tasks survive a round trip`() throws {
        let request = TransferRequest(url: "http://h/", method: "GET", headers: ["A": "b"], sensitiveHeaders: ["X"])
        var task = SessionTask {
            $0.taskIdentifier = 3
            $0.kind = .download
            $0.state = .completed
            $0.originalRequest = request
            $0.createdAt = time
            $0.revision = 9
        }
        try checkRoundTrip(task)
        task.phase = .retryWait
        task.waitingFor = [
            WaitingReason {
                $0.kind = "retry"
                $0.detail = "It waits."
                $0.until = time
            }
        ]
        task.outcome = .httpError
        task.currentRequest = request
        task.redirects = [
            Redirect {
                $0.statusCode = 302
                $0.from = "http://g/"
                $0.to = "http://h/"
            }
        ]
        task.response = response
        task.progress = TaskProgress {
            $0.fractionCompleted = 0.5
            $0.throughput = 10
            $0.estimatedTimeRemaining = 2.5
        }
        task.attempts = TaskAttempts {
            $0.count = 2
            $0.last = TaskAttempts.Attempt {
                $0.startedAt = time
                $0.endedAt = time
                $0.statusCode = 503
                $0.error = failure
            }
            $0.nextAt = time
        }
        task.error = failure
        task.content = Content {
            $0.length = 3
            $0.digest = digest
            $0.expiresAt = time
        }
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
        try checkRoundTrip(
            Batch {
                $0.created = 1
                $0.firstTaskIdentifier = 3
                $0.lastTaskIdentifier = 3
                $0.items = [task]
            })
        try checkRoundTrip(Batch { $0.created = 0 })
        try checkRoundTrip(Page(items: [task], nextCursor: "c"))
        var line = LineResult(taskIdentifier: 3, clientTaskId: "a", existing: true)
        line.line = 7
        try checkRoundTrip(line)
        try checkRoundTrip(LineResult(problem: Problem(.invalidValue, "No.")))
        try checkRoundTrip(TaskCancellation { $0.byProducingResumeData = true })
        try checkRoundTrip(ResumeDataAnswer { $0.notResumableReason = "weak" })
        try checkRoundTrip(
            TaskSelection {
                $0.state = [.running]
                $0.outcome = [.failed, .cancelled]
                $0.group = "g"
            })
        // A computed empty selection must not become a selection of everything.
        let nothing = TaskSelection { $0.outcome = OneOrMore([]) }
        #expect(String(decoding: nothing.jsonBytes, as: UTF8.self) == #"{"outcome":[]}"#)
        try checkRoundTrip(
            SelectionAnswer {
                $0.matched = 2
                $0.changed = 1
            })
        try checkRoundTrip(
            StoredBody {
                $0.id = "body_1"
                $0.length = 3
                $0.digest = digest
                $0.expiresAt = time
            })
        try checkRoundTrip(
            TaskChange {
                $0.priority = 1
                $0.taskDescription = .set("d")
                $0.metadata = .clear
                $0.earliestBeginDate = .set(time)
                $0.request = RequestChange {
                    $0.url = "http://h/"
                    $0.headers = ["A": "b"]
                    $0.sensitiveHeaders = []
                }
            })
    }

    @Test func `Events survive a round trip`() throws {
        let data = EventData.DidComplete {
            $0.outcome = .failed
            $0.error = failure
            $0.response = response
        }
        let event = Event {
            $0.seq = 4
            $0.type = .taskDidComplete
            $0.occurredAt = time
            $0.sessionIdentifier = "s"
            $0.taskIdentifier = 3
            $0.clientTaskId = "a"
            $0.group = "g"
            $0.data = JSONText(data)
        }
        try checkRoundTrip(event)
        #expect(try event.data.read(EventData.DidComplete.self) == data)
        try checkRoundTrip(
            EventPage {
                $0.items = [event]
                $0.lastSeq = 4
                $0.acknowledgedSeq = 1
                $0.finished = true
            })
        #expect(
            text(
                Event {
                    $0.type = .taskIsWaitingForConnectivity
                    $0.occurredAt = time
                    $0.sessionIdentifier = "s"
                })
                == #"{"seq":null,"type":"task.isWaitingForConnectivity","occurredAt":"2026-12-01T00:00:00.000Z","#
                + #""sessionIdentifier":"s","data":{}}"#)
        try checkRoundTrip(
            EventData.DidCreate {
                $0.kind = .upload
                $0.url = "http://h/"
            })
        try checkRoundTrip(
            EventData.DidSendBodyData {
                $0.bytesSent = 1
                $0.totalBytesSent = 2
            })
        try checkRoundTrip(
            EventData.DidWriteData {
                $0.bytesWritten = 1
                $0.totalBytesWritten = 2
                $0.totalBytesExpectedToWrite = 3
            })
        try checkRoundTrip(
            EventData.WillRetry {
                $0.attempt = 1
                $0.error = failure
                $0.nextAt = time
                $0.offset = 7
            })
        try checkRoundTrip(
            EventData.DidResumeAtOffset {
                $0.fileOffset = 0
                $0.cause = "changed"
            })
        try checkRoundTrip(
            EventData.DidFinishDownloading {
                $0.contentURL = "http://h/c"
                $0.length = 3
                $0.digest = digest
            })
        try checkRoundTrip(EventData.DidFinishEvents { $0.launchId = "lnch_1" })
        try checkRoundTrip(EventData.DidBecomeInvalid())
        try checkRoundTrip(
            TaskMetrics {
                $0.taskInterval = TaskInterval {
                    $0.start = time
                    $0.duration = 1.25
                }
                $0.redirectCount = 1
                $0.transactionMetrics = [
                    TransactionMetrics {
                        $0.url = "http://h/"
                        $0.statusCode = 200
                        $0.fetchStartDate = time
                    }
                ]
            })
        try checkRoundTrip(EventAck(through: 4, epoch: 1))
        try checkRoundTrip(
            AttachmentRequest {
                $0.ttl = 60
                $0.launchId = "lnch_1"
                $0.takeover = true
                $0.epoch = 2
            })
        try checkRoundTrip(
            Attachment {
                $0.epoch = 1
                $0.expiresAt = time
                $0.acknowledgedSeq = 0
                $0.lastSeq = 4
            })
        #expect(
            faults(EventAck.self, #"{"through":-1,"epoch":0}"#) == ["/through invalid-value", "/epoch invalid-value"])
        #expect(faults(AttachmentRequest.self, #"{"ttl":4}"#) == ["/ttl invalid-value"])
    }

    @Test func `Questions and credentials survive a round trip`() throws {
        try checkRoundTrip(space)
        let challenge = AuthenticationChallenge {
            $0.questionId = "q_1"
            $0.protectionSpace = space
            $0.previousFailureCount = 0
            $0.proposedCredential = ProposedCredential { $0.user = "u" }
            $0.failureResponse = response
            $0.deadline = time
        }
        try checkRoundTrip(challenge)
        let request = TransferRequest(url: "http://h/", method: "GET")
        try checkRoundTrip(
            DelayedRequest {
                $0.questionId = "q_1"
                $0.request = request
                $0.deadline = time
            })
        try checkRoundTrip(
            Question {
                $0.questionId = "q_1"
                $0.type = .taskDidReceiveChallenge
                $0.state = .answered
                $0.sessionIdentifier = "s"
                $0.taskIdentifier = 1
                $0.protectionSpace = space
                $0.previousFailureCount = 1
                $0.failureResponse = response
                $0.disposition = .useCredential
                $0.deadline = time
                $0.createdAt = time
                $0.answeredAt = time
            })
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
            StoredCredential {
                $0.credentialIdentifier = "c"
                $0.protectionSpace = space
                $0.user = "u"
                $0.createdAt = time
            })
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
    func `The members of an answer fit together`(_ json: String, _ expected: [String]) {
        #expect(faults(Answer.self, json) == expected)
    }

    @Test func `Launches and webhooks survive a round trip`() throws {
        var launch = Launch {
            $0.launchId = "lnch_1"
            $0.kind = "session.handleEvents"
            $0.state = .launched
            $0.createdAt = time
        }
        launch.sessionIdentifier = "s"
        launch.reasons = ["tasksFinished"]
        launch.lastSeq = 4
        launch.attempts = [
            LaunchAttempt {
                $0.number = 1
                $0.startedAt = time
                $0.duration = 0.5
                $0.statusCode = 500
                $0.excerpt = "x"
            }
        ]
        try checkRoundTrip(launch)
        try checkRoundTrip(
            LaunchCompletion {
                $0.through = 4
                $0.epoch = 1
            })
        try checkRoundTrip(LaunchCompletion { $0.result = .newData })
        #expect(
            faults(LaunchCompletion.self, #"{"result":"noData","through":1,"epoch":2}"#) == [
                "/through invalid-value", "/epoch invalid-value",
            ])

        let event = Event {
            $0.seq = 1
            $0.type = .sessionDidBecomeInvalid
            $0.occurredAt = time
            $0.sessionIdentifier = "s"
        }
        var counts = OutcomeCounts()
        counts.succeeded = 6
        let data = WebhookPayload.HandleEvents {
            $0.launchId = "lnch_1"
            $0.app = "com.example.app"
            $0.sessionIdentifier = "com.example.bg"
            $0.reasons = ["tasksFinished"]
            $0.lastSeq = 118
            $0.pendingEvents = 21
            $0.taskCounts = counts
            $0.eventsURL = "http://h/e"
            $0.completionURL = "http://h/c"
            $0.expiresAt = time
            $0.events = [event]
        }
        let payload = WebhookPayload {
            $0.type = "session.handleEvents"
            $0.timestamp = time
            $0.data = JSONText(data)
        }
        try checkRoundTrip(payload)
        #expect(try payload.data.read(WebhookPayload.HandleEvents.self) == data)
        let fetch = WebhookPayload.PerformFetch {
            $0.launchId = "lnch_2"
            $0.app = "a"
            $0.deadline = time
            $0.completionURL = "http://h/c"
        }
        #expect(
            text(fetch)
                == #"{"launchId":"lnch_2","app":"a","deadline":"2026-12-01T00:00:00.000Z","previousResult":null,"#
                + #""completionURL":"http://h/c"}"#)
        try checkRoundTrip(
            WebhookPayload.RefreshStatusDidChange {
                $0.app = "a"
                $0.backgroundRefreshStatus = .denied
            })
        try checkRoundTrip(WebhookPayload.Ping { $0.app = "a" })
    }

    @Test func `Apps and keys survive a round trip`() throws {
        let webhook = Webhook {
            $0.url = "https://h/"
            $0.state = .paused
            $0.includeEvents = 3
            $0.launchDeadline = 60
            $0.secret = "whsec_x"
        }
        try checkRoundTrip(
            App {
                $0.identifier = "com.example.app"
                $0.state = "active"
                $0.webhook = webhook
                $0.backgroundRefreshStatus = .available
                $0.limits = AppLimits { $0.tasks = 5 }
                $0.usage = AppUsage {
                    $0.tasks = 1
                    $0.storedBytes = 2
                    $0.storedBytesOnDisk = 3
                }
                $0.createdAt = time
                $0.revision = 3
                $0.apiKey = "usd_x"
            })
        let change = WebhookChange {
            $0.url = .set("https://h/")
            $0.state = .enabled
            $0.includeEvents = 100
            $0.launchDeadline = 5
        }
        try checkRoundTrip(
            AppCreation {
                $0.identifier = "a"
                $0.webhook = change
                $0.backgroundRefreshStatus = .denied
                $0.limits = AppLimitsChange {
                    $0.tasks = 5
                    $0.storedBytes = .clear
                }
            })
        try checkRoundTrip(
            AppChange {
                $0.webhook = .set(WebhookChange { $0.url = .clear })
                $0.backgroundRefreshStatus = .restricted
            })
        try checkRoundTrip(OwnAppChange { $0.webhook = .set(change) })
        try checkRoundTrip(OwnAppChange { $0.webhook = .clear })
        try checkRoundTrip(
            AppKey {
                $0.keyIdentifier = "k"
                $0.apiKey = "usd_k_s"
                $0.scopes = [.events, .app]
                $0.expiresAt = time
            })
        try checkRoundTrip(
            AppKeyCreation {
                $0.scopes = [.sessionsRead]
                $0.expiresAt = time
            })
        try checkRoundTrip(SecretRotation { $0.gracePeriod = 0 })
        try checkRoundTrip(
            RotatedSecret {
                $0.secret = "whsec_x"
                $0.previousSecretExpiresAt = time
            })
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

    @Test func `Refresh and conditions survive a round trip`() throws {
        for interval: FetchInterval in [.never, .minimum, .seconds(900), .seconds(1800.5), .seconds(1e300)] {
            try checkRoundTrip(BackgroundRefreshChange(minimumBackgroundFetchInterval: interval))
        }
        for wrong in ["899", "\"often\"", "null", "true"] {
            let json = #"{"minimumBackgroundFetchInterval":\#(wrong)}"#
            #expect(faults(BackgroundRefreshChange.self, json) == ["/minimumBackgroundFetchInterval invalid-value"])
        }
        try checkRoundTrip(
            BackgroundRefresh {
                $0.minimumBackgroundFetchInterval = .minimum
                $0.backgroundRefreshStatus = .available
                $0.nextFetchAt = time
                $0.why = "It is due."
                $0.history = [
                    PastFetch {
                        $0.launchId = "lnch_1"
                        $0.at = time
                        $0.duration = 1
                        $0.result = .noData
                    }
                ]
            })
        #expect(try Conditions(parsing: Array("{}".utf8)) == Conditions())
        let window = Conditions.Window(days: [.monday, .sunday], from: "22:00", to: "06:00", bandwidthLimit: 1000)
        try checkRoundTrip(
            Conditions {
                $0.network = Conditions.Network { $0.cellular = true }
                $0.power = Conditions.Power { $0.external = false }
                $0.maximumLoad = 2
                $0.windows = [window]
                $0.backgroundRefreshStatus = .denied
            })
        #expect(
            faults(Conditions.self, #"{"windows":[{"days":["Monday"],"from":"24:00","to":"24:01"}]}"#) == [
                "/windows/0/days/0 invalid-value", "/windows/0/from invalid-value", "/windows/0/to invalid-value",
            ])
    }

    @Test func `Words of a newer service are readable, and requests have none`() throws {
        func read<Value: Shape>(_ type: Value.Type, _ text: String) throws -> Value {
            try Value(parsing: Array(text.utf8), .tolerant)
        }
        let policy = #"{"retryPolicy":"cautious"}"#
        #expect(try read(SessionConfiguration.self, policy).retryPolicy == .robust)
        #expect(faults(SessionConfiguration.self, policy) == ["/retryPolicy invalid-value"])
        let interval = #"{"minimumBackgroundFetchInterval":"often"}"#
        #expect(try read(BackgroundRefreshChange.self, interval).minimumBackgroundFetchInterval == .minimum)
        let task = #"{"kind":"upload","request":{"url":"https://h/"},"body":{"stream":1},"segments":"many"}"#
        let creation = try read(TaskCreation.self, task)
        #expect(creation.body == .json(.null) && creation.terms.segments == .auto)
        #expect(throws: JSONError.self) { try TaskCreation(parsing: Array(task.utf8)) }
        // A value of another type is no word.
        #expect(throws: JSONError.self) { try read(SessionConfiguration.self, #"{"retryPolicy":1}"#) }
    }

    @Test func `Nodes survive a round trip`() throws {
        var node = Node {
            $0.id = "n"
            $0.state = .draining
            $0.roles = [.api, .transfer, .launch]
            $0.version = "1.2.3"
            $0.url = "https://h"
            $0.startedAt = time
            $0.heartbeatAt = time
            $0.transfersRunning = 3
            $0.maximumTransfers = 256
            $0.load = 0.5
        }
        try checkRoundTrip(Page(items: [node], nextCursor: nil))
        node.load = nil
        #expect(text(node).contains(#""load":null"#))
        // A client keeps unknown words of a newer node.
        let newer = text(node).replacing("launch", with: "newer").replacing("draining", with: "leaving")
        let read = try Node(parsing: Array(newer.utf8), .tolerant)
        #expect(read.roles.last?.rawValue == "newer" && read.state.rawValue == "leaving")
    }

    @Test func `Problems have the codes that clients switch on`() throws {
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
        #expect(ProblemCode.known.count == 49)
        #expect(ProblemCode.known.allSatisfy { $0.title != $0.rawValue && (400...507).contains($0.status) })
    }

    @Test func `An unreadable body becomes a problem`() {
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
        #expect(problem(#"{"through":"1"}"#)?.detail.contains("more fault") == false)
        #expect(problem(#"{"through":"1","x":1}"#)?.detail.hasSuffix(" There is 1 more fault.") == true)
        #expect(problem(#"{"through":"1","x":1,"y":1}"#)?.detail.hasSuffix(" There are 2 more faults.") == true)
    }
}
