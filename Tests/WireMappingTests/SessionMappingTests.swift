import Core
import Testing
import Wire

@testable import WireMapping

@Suite struct SessionMappingTests {
    private static let changed: WireJSON = [
        "isDiscretionary": true, "sessionSendsLaunchEvents": false, "timeoutIntervalForRequest": 5,
        "timeoutIntervalForResource": 50, "httpMaximumConnectionsPerHost": 2,
        "httpAdditionalHeaders": ["Authorization": "Bearer hush", "X-A": "1"], "httpShouldSetCookies": false,
        "httpCookieAcceptPolicy": "never", "allowsCellularAccess": false, "allowsExpensiveNetworkAccess": false,
        "allowsConstrainedNetworkAccess": false, "waitsForConnectivity": false,
        "tlsMinimumSupportedProtocolVersion": "1.3", "requiresSecureTransport": true,
        "pinnedPublicKeys": ["A.example": ["sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="]],
        "proxy": [
            "type": "socks5h", "host": "p.example", "port": 1080, "credential": ["user": "u", "password": "hush"],
        ],
        "authenticationChallenges": "performDefaultHandling", "networkServiceType": "background",
        "retryPolicy": ["statusCodes": [503, 500], "maximumAttempts": 3, "initialDelay": 2, "maximumDelay": 9],
        "bandwidthLimit": 1000, "resumableUploads": "off",
    ]

    private func configuration(_ json: WireJSON) throws -> Core.SessionConfiguration {
        Core.SessionConfiguration(try Wire.SessionConfiguration(from: json))
    }

    @Test func `An empty configuration has the defaults`() throws {
        #expect(try configuration([:]) == Core.SessionConfiguration())
    }

    @Test func `Every member of a configuration is mapped, and returned without its secrets`() throws {
        let core = try configuration(Self.changed)
        #expect(try core.differences(from: Core.SessionConfiguration()).count == 21)
        #expect(core.proxy?.password == "hush")
        #expect(core.httpAdditionalHeaders["authorization"] == "Bearer hush")
        let shown = Wire.SessionConfiguration(core)
        #expect(!String(decoding: shown.jsonBytes, as: UTF8.self).contains("hush"))
        #expect(shown.proxy?.user == "u")
        let again = Core.SessionConfiguration(shown)
        #expect(try again.differences(from: core) == ["httpAdditionalHeaders", "proxy"])
    }

    @Test func `A session shows the attached client`() throws {
        var attachment = Core.Attachment()
        try attachment.handle(.take(ttl: .seconds(30), launchId: nil, takeover: false), at: Records.time)
        let record = SessionRecord(
            id: SessionID(1), app: AppID(1), identifier: "s", incarnation: 2, state: .invalidating,
            configuration: Core.SessionConfiguration(), sessionDescription: nil, counts: Core.TaskCounts(),
            countOfBytesReceived: 1, countOfBytesSent: 2, lastEventSeq: 3, acknowledgedSeq: 2, droppedSeq: 0,
            attachment: attachment, lastTaskNumber: 0, openLaunch: nil, createdAt: Records.time, revision: 5)
        let leased = Wire.Session(record, attendance: nil, launch: nil, at: Records.time)
        #expect(leased.attachment?.kind == "lease" && leased.attachment?.expiresAt == "2027-01-15T08:00:30.000Z")
        #expect(leased.state == .invalidating)
        let streamed = Wire.Session(record, attendance: .stream, launch: nil, at: Records.time)
        #expect(streamed.attachment == Session.Attached { $0.kind = "stream" })
        let lapsed = Wire.Session(record, attendance: nil, launch: nil, at: Records.time + .seconds(30))
        #expect(lapsed.attachment == nil)
        #expect(Wire.Attachment(record)?.epoch == 1)
    }

    @Test func `Conditions and windows are mapped both ways`() throws {
        let wire = try Wire.Conditions(from: [
            "network": ["expensive": true], "power": ["external": false], "maximumLoad": 2,
            "windows": [["days": ["saturday", "monday"], "from": "08:30", "to": "24:00", "bandwidthLimit": 7]],
            "backgroundRefreshStatus": "denied",
        ])
        let core = Core.Conditions(wire)
        #expect(core.windows.first?.from == 510)
        #expect(core.windows.first?.to == 1440)
        var shown = Wire.Conditions(core, .denied)
        #expect(shown.windows.first?.days == [.monday, .saturday])
        shown.windows[0].days = wire.windows[0].days
        #expect(shown == wire)
    }

    @Test func `An app's webhook changes member by member`() throws {
        var settings = WebhookSettings()
        settings.url = "https://a.example/"
        settings.state = .disabled
        settings.disabledReason = "410"
        let enabled = settings.applying(try WebhookChange(from: ["state": "enabled", "launchDeadline": 9.5]))
        #expect(enabled.url == "https://a.example/")
        #expect(enabled.state == .enabled)
        #expect(enabled.disabledReason == nil)
        #expect(enabled.launchDeadline == 10)
        #expect(settings.applying(try WebhookChange(from: ["url": nil])).url == nil)
    }

    @Test func `A launch shows its reasons and its next attempt`() {
        let record = LaunchRecord(
            launchId: "lnch_1", app: AppID(1), session: SessionID(1), sessionIdentifier: "s", kind: .handleEvents,
            state: .pending(attempts: 1, nextAttemptAt: Records.time), reasons: [.tasksFinished, .delayedRequestReady],
            lastSeq: 9,
            attempts: [
                Core.LaunchAttempt(
                    number: 1, startedAt: Records.time, duration: .milliseconds(1500), statusCode: 500, error: nil,
                    excerpt: "no")
            ], traceparent: nil, createdAt: Records.time, expiresAt: nil, result: nil)
        let launch = Launch(record)
        #expect(launch.state == .pending)
        #expect(launch.reasons == ["tasksFinished", "delayedRequestReady"])
        #expect(launch.nextAttemptAt == "2027-01-15T08:00:00.000Z")
        #expect(launch.attempts.first?.duration == 1.5)
    }
}

@Suite struct AnswerMappingTests {
    private func record(_ question: Core.Question) -> QuestionRecord {
        QuestionRecord(
            questionId: "q_1", task: TaskID(1), taskIdentifier: 7, session: SessionID(1), sessionIdentifier: "s",
            state: .open, question: question, createdAt: Records.time, deadline: Records.time + .seconds(60))
    }

    private var challenge: QuestionRecord {
        record(
            Core.Question(
                kind: .challenge,
                protectionSpace: Core.ProtectionSpace(
                    host: "a.example", port: 443, scheme: "https", realm: "r", authenticationMethod: .digest),
                previousFailureCount: 1, proposedUser: "me", failureResponse: Records.response))
    }

    private var delayed: QuestionRecord {
        record(Core.Question(kind: .delayedRequest, request: Records.specification(kind: .upload).request))
    }

    private func answer(_ json: WireJSON, _ question: QuestionRecord) throws -> Core.Answer {
        try Core.Answer(Wire.Answer(from: json), to: question)
    }

    @Test func `A question shows the request, and no secret`() throws {
        let shown = try WireJSON.parse(Wire.Question(challenge).jsonBytes)
        #expect(shown["type"] == "task.didReceiveChallenge")
        #expect(shown["protectionSpace"]?["authenticationMethod"] == "HTTPDigest")
        #expect(shown["proposedCredential"] == ["user": "me"])
        #expect(shown["previousFailureCount"] == 1)
        for question in [challenge, delayed] {
            for bytes in [Wire.Question(question).jsonBytes, EventEnvelope.question(question).bytes] {
                #expect(!String(decoding: bytes, as: UTF8.self).contains("hush"))
            }
        }
    }

    @Test func `An answer has to fit its question`() throws {
        let credential: WireJSON = ["user": "u", "password": "p", "persistence": "forSession"]
        let given = try answer(["disposition": "useCredential", "credential": credential], challenge)
        #expect(given.credential?.user == "u")
        #expect(given.credential?.persistence == .forSession)
        #expect(throws: JSONError.self) {
            try answer(["disposition": "useCredential", "credential": ["token": "t"]], challenge)
        }
        #expect(throws: JSONError.self) { try answer(["disposition": "continueLoading"], challenge) }
        #expect(throws: JSONError.self) { try answer(["disposition": "rejectProtectionSpace"], delayed) }
        let request: WireJSON = ["url": "https://c.example/"]
        let fresh = try answer(["disposition": "useNewRequest", "request": request], delayed)
        #expect(fresh.request?.url == "https://c.example/")
        #expect(fresh.request?.method == "PUT")
    }
}
