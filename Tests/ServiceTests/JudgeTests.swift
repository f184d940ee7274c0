import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

struct JudgeTests {
    private let now = Timestamp(milliseconds: 1_800_000_000_000)

    private func transfer(
        _ url: String = "https://a.example/x", kind: TaskKind = .download, resuming offset: Int64? = nil,
        body: BodyLocation? = nil,
        _ configure: (inout SessionConfiguration) -> Void = { _ in },
        _ specify: (inout TaskSpecification) -> Void = { _ in }
    ) throws -> Transfer {
        var specification = TaskSpecification(
            kind: kind, request: TransferRequest(url: url, method: kind == .upload ? "PUT" : "GET"))
        specify(&specification)
        var progress = TaskProgress()
        if let offset {
            let point = ResumePoint {
                $0.url = url
                $0.entityTag = "\"v\""
                $0.totalLength = 1000
                $0.offset = offset
            }
            progress.kept = .file(point, source: 0)
        }
        var configuration = SessionConfiguration()
        configure(&configuration)
        let task = ClaimedTask(
            id: TaskID(1), session: SessionID(1), app: AppID(1), number: 1, lane: 1, specification: specification,
            progress: progress, body: body, resourceDeadline: now + .seconds(1000))
        return try Transfer(
            task, in: KnownSession(configuration: configuration, app: "app", identifier: "session"),
            version: "1", node: nil, at: now)
    }

    private func result(
        _ outcome: ExchangeOutcome = .complete, _ status: Int? = 200, _ fields: [(String, String)] = [],
        _ received: ReceivedContent = .memory([1, 2]), _ change: (inout ExchangeResult) -> Void = { _ in }
    ) -> ExchangeResult {
        var result = ExchangeResult(
            outcome: outcome,
            head: status.map {
                ResponseHead(
                    status: $0, fields: HTTPFields(fields.map { HTTPField(name: $0.0, value: $0.1) }))
            },
            received: received, receivedTruncated: false, side: [], sideTruncated: false, length: 2,
            lengthVerified: true, digests: [.sha256: [0xAA]],
            metrics: TransactionMetrics(url: "", fetchStartDate: now), curlCode: 0, curlMessage: "",
            serverPublicKey: nil, cookies: [])
        result.metrics.countOfResponseBodyBytesReceived = 2
        change(&result)
        return result
    }

    /// Judges like the engine's thread and the scheduler: the head's verdict first.
    private func judge(
        _ transfer: Transfer, _ result: ExchangeResult, canAsk: Bool = true
    ) -> (Judgement, TaskProgress) {
        var result = result
        result.judgement = result.head.map { head in
            let isDownload = transfer.specification.kind == .download
            return HeadJudgement(
                .keep(at: 0), isDownload ? ResumeVerdict.judge(head: head, resuming: transfer.attempt.resuming) : nil)
        }
        var judge = Judge(transfer, result, at: now, jitter: 0.5, canAsk: canAsk)
        let judgement = judge.judge()
        return (judgement, judge.progress)
    }

    private func finished(_ judgement: Judgement) throws -> (Outcome, TaskResult, Judgement.ContentSource) {
        guard case .finish(let outcome, let result, let source) = judgement else { throw Unexpected() }
        return (outcome, result, source)
    }

    @Test func `A reused connection that was closed costs no attempt, twice`() throws {
        var transfer = try transfer()
        func outcome(_ fault: TransferFault, isReused: Bool = true, status: Int? = nil) -> String {
            let (judgement, progress) = judge(
                transfer, result(.failed(fault), status) { $0.metrics.isReusedConnection = isReused })
            switch judgement {
            case .send(.repeated): return "again, \(progress.attempts.attempts)"
            case .retry: return "retry, \(progress.attempts.attempts)"
            default: return "\(judgement)"
            }
        }
        for repeats in 0..<Judge.maximumRepeats {
            transfer.attempt.repeats = repeats
            for fault in [TransferFault.reset, .emptyReply, .http2Refused, .http2Stream] {
                #expect(outcome(fault) == "again, 0")
            }
        }
        #expect(outcome(.reset, isReused: false) == "retry, 1")
        #expect(outcome(.idleTimeout) == "retry, 1")
        #expect(outcome(.reset, status: 200) == "retry, 1")
        transfer.request.method = "POST"
        #expect(outcome(.reset) == "retry, 1")
        transfer.request.method = "GET"
        transfer.attempt.repeats = Judge.maximumRepeats
        #expect(outcome(.reset) == "retry, 1")
    }

    @Test(
        arguments: [
            (200, 9, "PUT", "retry"), (200, 10, "PUT", "succeeded"), (201, 0, "PUT", "retry"),
            (200, 9, "POST", "failed"),
            (413, 9, "PUT", "httpError"), (404, 9, "PUT", "retry"), (404, 10, "PUT", "succeeded"),
        ] as [(Int, Int64, String, String)])
    func `A success is refused from an origin that does not have the whole body`(
        _ status: Int, _ sent: Int64, _ method: String, _ end: String
    ) throws {
        let body = BodyLocation(storage: .bytes(Array(repeating: 1, count: 10)), length: 10, digest: "")
        let transfer = try transfer(kind: .upload, body: body, { _ in }) {
            $0.request.method = method
            $0.acceptableStatusCodes = [StatusRange(200, 299), StatusRange(404, 404)]
        }
        let (judgement, progress) = judge(
            transfer, result(.complete, status) { $0.metrics.countOfRequestBodyBytesSent = sent })
        switch judgement {
        case .retry:
            #expect(end == "retry")
            #expect(progress.lastAttempt?.error?.underlying?.code == "answered-early")
        case .finish(let outcome, let result, _):
            #expect(outcome.rawValue == end)
            #expect(result.error?.underlying?.code == (end == "failed" ? "answered-early" : nil))
        default: Issue.record("\(judgement)")
        }
    }

    @Test(arguments: [
        (303, "PUT", 9, "retry"), (303, "POST", 9, "failed"), (302, "POST", 0, "failed"), (303, "PUT", 10, "send"),
    ])
    func `A redirect that drops the body is not followed before the whole body was sent`(
        _ status: Int, _ method: String, _ sent: Int64, _ end: String
    ) throws {
        let body = BodyLocation(storage: .bytes(Array(repeating: 1, count: 10)), length: 10, digest: "")
        let transfer = try transfer(kind: .upload, body: body, { _ in }) { $0.request.method = method }
        let (judgement, progress) = judge(
            transfer,
            result(.complete, status, [("Location", "/elsewhere")]) {
                $0.metrics.countOfRequestBodyBytesSent = sent
            })
        switch judgement {
        case .retry: #expect(end == "retry" && progress.redirects.isEmpty)
        case .finish(let outcome, let result, _):
            #expect(outcome == .failed && end == "failed" && result.error?.underlying?.code == "answered-early")
        case .send(.follow): #expect(end == "send")
        default: Issue.record("\(judgement)")
        }
    }

    @Test func `After a redirect that turned the upload into a GET there is no body to send`() throws {
        let body = BodyLocation(storage: .bytes([1]), length: 1, digest: "")
        var transfer = try transfer(kind: .upload, body: body)
        transfer.request.method = "GET"
        transfer.request.sendsBody = false
        #expect(try finished(judge(transfer, result()).0).0 == .succeeded)
    }

    @Test
    func `A success completes the task with its content and one attempt`() throws {
        let head = [("Content-Type", "text/html; charset=utf-8"), ("Content-Length", "2")]
        let (outcome, told, source) = try finished(judge(try transfer(), result(.complete, 200, head)).0)
        #expect(outcome == .succeeded)
        #expect(told.progress.attempts.attempts == 1)
        #expect(told.progress.lastAttempt?.number == 1)
        #expect(told.response?.statusCode == 200)
        #expect(told.response?.mimeType == "text/html")
        #expect(told.response?.expectedContentLength == 2)
        guard case .bytes([1, 2], digest: [0xAA]) = source else { throw Unexpected() }
    }

    @Test(arguments: [(301, "GET", false), (303, "GET", true), (307, "PUT", false)])
    func `Redirects follow the rules of their status`(status: Int, method: String, drops: Bool) throws {
        let upload = try transfer(kind: status == 301 ? .download : .upload)
        let (judgement, progress) = judge(upload, result(.complete, status, [("Location", "//b.example/y")]))
        guard case .send(.follow(let hop)) = judgement else { throw Unexpected() }
        #expect(hop.url.text == "https://b.example/y")
        #expect(hop.method == method)
        #expect(hop.dropsBody == drops)
        #expect(hop.dropsSecrets)
        #expect(progress.redirects == [RedirectRecord(statusCode: status, url: "https://b.example/y")])
        #expect(progress.attempts.attempts == 0)
    }

    @Test(
        arguments: [
            (nil, URLErrorCode.redirectToNonExistentLocation), ("http://[", .redirectToNonExistentLocation),
            ("ftp://b.example/", .unsupportedURL), ("http://a.example/", .appTransportSecurityRequiresSecureConnection),
        ] as [(String?, URLErrorCode)])
    func `Redirects that cannot be followed fail the task`(location: String?, code: URLErrorCode) throws {
        let fields = location.map { [("Location", $0)] } ?? []
        let (outcome, told, _) = try finished(judge(try transfer(), result(.complete, 302, fields)).0)
        #expect(outcome == .failed)
        #expect(told.error?.code == code)
    }

    @Test
    func `A retriable status waits, and is the result when no attempt is left`() throws {
        let busy = result(.complete, 503, [("Retry-After", "20")])
        let (judgement, progress) = judge(try transfer(), busy)
        guard case .retry(let at, false) = judgement else { throw Unexpected() }
        #expect(at == now + .seconds(20))
        #expect(progress.attempts.statusAttempts == 1)
        #expect(progress.lastAttempt?.statusCode == 503)
        var last = try transfer()
        last.progress.attempts.statusAttempts = 4
        last.progress.attempts.attempts = 4
        let (outcome, told, _) = try finished(judge(last, busy).0)
        #expect(outcome == .httpError)
        #expect(told.error == nil)
        #expect(told.progress.attempts.attempts == 5)
        let (apple, _, _) = try finished(judge(try transfer { $0.retryPolicy = .apple }, busy).0)
        #expect(apple == .httpError)
    }

    @Test
    func `An error status leaves the bytes of a resumed download unchanged`() throws {
        let (judgement, progress) = judge(try transfer(resuming: 500), result(.complete, 503, [], .none))
        guard case .retry = judgement else { throw Unexpected() }
        #expect(progress.kept.point?.offset == 500)
        let gone = judge(try transfer(resuming: 500), result(.complete, 404, [], .none) { $0.side = [7] }).0
        let (outcome, _, source) = try finished(gone)
        #expect(outcome == .httpError)
        guard case .bytes([7], _) = source else { throw Unexpected() }
    }

    @Test
    func `A page that was cut for the sake of kept bytes is requested once more, without them`() throws {
        let gone = result(.complete, 404, [], .none) { ($0.side, $0.sideTruncated) = ([7], true) }
        let (judgement, progress) = judge(try transfer(resuming: 500), gone)
        guard case .send(.again) = judgement else { throw Unexpected() }
        #expect(progress.kept == .none && progress.bytesFetchedTwice == 500)
        #expect(progress.attempts == AttemptLedger())
        #expect(try finished(judge(try transfer(), gone).0).0 == .httpError)
    }

    @Test
    func `Network faults are retried with the kept bytes`() throws {
        let head = [("ETag", "\"v\""), ("Content-Length", "1000")]
        let cut = result(.failed(.shortBody), 200, head, .file(path: "p", length: 400))
        let (judgement, progress) = judge(try transfer(), cut)
        guard case .retry(_, false) = judgement else { throw Unexpected() }
        #expect(progress.kept.point?.offset == 400)
        #expect(progress.kept.point?.entityTag == "\"v\"")
        #expect(progress.lastAttempt?.error?.code == .networkConnectionLost)
        let weak = result(.failed(.reset), 200, [("ETag", "W/\"v\"")], .file(path: "p", length: 400))
        let (again, fresh) = judge(try transfer(), weak)
        guard case .retry = again else { throw Unexpected() }
        #expect(fresh.kept == .none)
        let offline = result(.failed(.noConnectivity), nil, [], .none)
        let (waiting, kept) = judge(try transfer(resuming: 300), offline)
        guard case .retry(_, true) = waiting else { throw Unexpected() }
        #expect(kept.kept.point?.offset == 300)
    }

    @Test(
        arguments: [
            (TransferFault.certificateUntrusted, URLErrorCode.serverCertificateUntrusted),
            (.certificateExpired, .serverCertificateHasBadDate), (.badRequest, .badURL),
            (.tooLarge, .dataLengthExceedsMaximum), (.headersTooLarge, .cannotParseResponse),
            (.egressDenied, .appTransportSecurityRequiresSecureConnection),
        ])
    func `Faults that another attempt cannot mend fail the task`(fault: TransferFault, code: URLErrorCode) throws {
        let (judgement, _) = judge(try transfer(), result(.failed(fault), nil, [], .none), canAsk: false)
        let (outcome, told, _) = try finished(judgement)
        #expect(outcome == .failed)
        #expect(told.error?.code == code)
        #expect(told.progress.attempts.attempts == 1)
    }

    @Test
    func `A page that is too long for a content counts only as the task's result`() throws {
        guard case .retry = judge(try transfer(), result(.failed(.tooLarge), 503)).0 else { throw Unexpected() }
        let challenge = [("WWW-Authenticate", "Basic realm=\"b\"")]
        guard case .ask = judge(try transfer(), result(.failed(.tooLarge), 401, challenge)).0 else {
            throw Unexpected()
        }
        for status in [200, 404] {
            let (outcome, told, _) = try finished(judge(try transfer(), result(.failed(.tooLarge), status)).0)
            #expect(outcome == .failed && told.error?.code == .dataLengthExceedsMaximum)
            #expect(told.progress.attempts.attempts == 1)
        }
    }

    @Test
    func `A full disk makes the task wait and charges nothing`() throws {
        let full = result(.failed(.disk(errno: 28)), 200, [("ETag", "\"v\"")], .file(path: "p", length: 10))
        let (judgement, progress) = judge(try transfer(), full)
        guard case .waitForDisk(_, let at) = judgement else { throw Unexpected() }
        #expect(at >= now)
        #expect(progress.attempts.attempts == 0)
        #expect(progress.kept.point?.offset == 10 || progress.diskLosses == 1)
    }

    @Test
    func `A disk that stays full pauses a download in segments for longer each time`() throws {
        let record = SegmentRecord {
            $0.total = 40 << 20
            $0.held = [HeldRange(0, 1 << 20)]
        }
        let point = ResumePoint {
            $0.entityTag = "\"v\""
            $0.totalLength = 40 << 20
        }
        var progress = TaskProgress()
        progress.kept = .segments(record, point, source: 0)
        progress.diskPauses = 3
        var transfer = try TransferTests.transfer(progress) { $0.segments = .count(4) }
        transfer.stage = .segmented(try #require(transfer.restoredSegments))
        let (judgement, after) = judge(transfer, result(.failed(.disk(errno: 28)), nil, [], .none))
        guard case .waitForDisk(_, let at) = judgement else { throw Unexpected() }
        #expect(after.diskPauses == 4 && at == now + DiskPlan.delay(afterPauses: 4))
    }

    @Test
    func `A part of another version restarts the download`() throws {
        let wrong = [("ETag", "\"other\""), ("Content-Range", "bytes 500-999/1000")]
        let (judgement, progress) = judge(try transfer(resuming: 500), result(.complete, 206, wrong))
        guard case .send(.again(let cause)) = judgement else { throw Unexpected() }
        #expect(cause == "validatorChanged")
        #expect(progress.kept == .none)
        #expect(progress.attempts.restarts == 1)
        #expect(progress.bytesFetchedTwice == 500)
    }

    @Test(arguments: [("\"v\"", 0, 10, "0a"), ("W/\"v\"", 10, nil, nil)] as [(String, Int64, Int64?, String?)])
    func `The received bytes are kept with their digest, or recorded as lost`(
        _ tag: String, _ lost: Int64, _ offset: Int64?, _ digest: String?
    ) throws {
        let broken = result(
            .failed(.shortBody), 200, [("ETag", tag), ("Content-Length", "20")], .file(path: "p", length: 10)
        ) { $0.partialSHA256 = [0x0A] }
        let (judgement, progress) = judge(try transfer(), broken)
        guard case .retry = judgement else { throw Unexpected() }
        #expect(progress.bytesFetchedTwice == lost)
        #expect(progress.kept.point?.offset == offset && progress.kept.point?.digest == digest)
    }

    @Test
    func `A 416 for a complete file completes the task`() throws {
        let unsatisfied = [("ETag", "\"v\""), ("Content-Range", "bytes */1000")]
        let (outcome, _, source) = try finished(
            judge(try transfer(resuming: 1000), result(.complete, 416, unsatisfied, .none)).0)
        #expect(outcome == .succeeded)
        guard case .existingFile(length: 1000) = source else { throw Unexpected() }
    }

    @Test(
        arguments: [
            (206, "bytes 600-999/1000", "400", 600), (416, "bytes */1000", "20", 1000),
        ] as [(Int, String, String, Int64)])
    func `The expected length of a resumed download is that of the whole content`(
        _ status: Int, _ range: String, _ length: String, _ offset: Int64
    ) throws {
        let head = [("ETag", "\"v\""), ("Content-Range", range), ("Content-Length", length)]
        let received: ReceivedContent = status == 206 ? .file(path: "p", length: 1000) : .none
        let (_, told, _) = try finished(
            judge(try transfer(resuming: offset), result(.complete, status, head, received)).0)
        #expect(told.response?.expectedContentLength == 1000)
    }

    @Test
    func `A wrong digest restarts the download once, then fails it`() throws {
        let expected = ContentDigest(algorithm: .sha256, value: "bb")
        var first = try transfer { _ in
        } _: {
            $0.expectedDigest = expected
        }
        let (judgement, progress) = judge(first, result())
        guard case .send(.again(cause: "digestMismatch")) = judgement else { throw Unexpected() }
        first.progress = progress
        let (outcome, told, _) = try finished(judge(first, result()).0)
        #expect(outcome == .failed)
        #expect(told.error?.code == .badServerResponse)
        #expect(told.error?.underlying?.code == "digest-mismatch")
        let announced = [("Repr-Digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:")]
        guard case .send(.again) = judge(try transfer(), result(.complete, 200, announced)).0 else {
            throw Unexpected()
        }
    }

    @Test
    func `A challenge becomes a question if the app answers questions`() throws {
        let challenge = [("WWW-Authenticate", "Negotiate, Digest realm=\"d\", Basic realm=\"b\"")]
        let answer = result(.complete, 401, challenge)
        guard case .ask(let question) = judge(try transfer(), answer).0 else { throw Unexpected() }
        #expect(question.protectionSpace?.authenticationMethod == .digest)
        #expect(question.protectionSpace?.host == "a.example")
        #expect(question.protectionSpace?.port == 443)
        #expect(try finished(judge(try transfer(), answer, canAsk: false).0).0 == .httpError)
        let silent = try transfer { $0.authenticationChallenges = .performDefaultHandling }
        #expect(try finished(judge(silent, answer).0).0 == .httpError)
        var rejected = try transfer()
        rejected.progress.authentication = [AuthenticationStep(questionId: "q", disposition: .rejectProtectionSpace)]
        guard case .ask(let second) = judge(rejected, answer).0 else { throw Unexpected() }
        #expect(second.protectionSpace?.authenticationMethod == .basic)
        #expect(second.previousFailureCount == 0)
        rejected.progress.authentication.append(
            AuthenticationStep(questionId: "r", disposition: .rejectProtectionSpace))
        #expect(try finished(judge(rejected, answer).0).0 == .httpError)
    }

    @Test
    func `Stored credentials that were refused count`() throws {
        var transfer = try transfer()
        let space = ProtectionSpace(
            host: "a.example", port: 443, scheme: "https", realm: "b", authenticationMethod: .basic)
        func known(_ id: String) -> KnownCredential {
            KnownCredential(
                credentialId: id, space: space, credential: Credential(user: id, password: "p"), createdAt: now)
        }
        let answer = result(.complete, 401, [("WWW-Authenticate", "Basic realm=\"b\"")])
        transfer.attempt.access.stored = [known("one"), known("two")]
        transfer.attempt.access.credential = known("one").credential
        let (first, progress) = judge(transfer, answer)
        guard case .send(.authenticate) = first else { throw Unexpected() }
        #expect(progress.credentialsTried == ["one", "two"])
        transfer.progress = progress
        transfer.attempt.access.credential = known("two").credential
        guard case .ask(let question) = judge(transfer, answer).0 else { throw Unexpected() }
        #expect(question.previousFailureCount == 2)
    }

    @Test
    func `An untrusted server becomes a question with its key, a wrong pin never does`() throws {
        let untrusted = result(.failed(.certificateUntrusted), nil, [], .none) { $0.serverPublicKey = "sha256/k" }
        guard case .ask(let question) = judge(try transfer(), untrusted).0 else { throw Unexpected() }
        #expect(question.protectionSpace?.authenticationMethod == .serverTrust)
        #expect(question.protectionSpace?.serverPublicKey == "sha256/k")
        let pinned = result(.failed(.pinMismatch), nil, [], .none) { $0.serverPublicKey = "sha256/k" }
        #expect(try finished(judge(try transfer(), pinned).0).1.error?.code == .serverCertificateUntrusted)
    }

    @Test(arguments: [("https://a.example/up/1", true), ("https://b.example/up/1", false)])
    func `An upload resource at another origin asks no questions in the target's name`(
        _ resource: String, _ mayAsk: Bool
    ) throws {
        let body = BodyLocation(storage: .bytes(Array(repeating: 1, count: 10)), length: 10, digest: "")
        var transfer = try transfer(kind: .upload, body: body)
        transfer.attempt.upload = ResumableUpload(
            version: .eight, length: 10, resource: try ParsedURL(resource), offset: 5)
        let refused = result(.complete, 401, [("WWW-Authenticate", "Basic realm=\"b\"")])
        let (judgement, progress) = judge(transfer, refused)
        switch judgement {
        case .ask(let question): #expect(mayAsk && question.protectionSpace?.host == "a.example")
        case .send(.upload(let upload)):
            #expect(!mayAsk && upload.step == .create && progress.attempts.restarts == 1)
        default: Issue.record("\(judgement)")
        }
        let untrusted = result(.failed(.certificateUntrusted), nil, [], .none) { $0.serverPublicKey = "sha256/k" }
        switch judge(transfer, untrusted).0 {
        case .ask: #expect(mayAsk)
        case .finish(let outcome, let result, _):
            #expect(!mayAsk && outcome == .failed && result.error?.code == .serverCertificateUntrusted)
        default: Issue.record("neither a question nor the end")
        }
    }

    @Test
    func `A stopped transfer is returned with its progress`() throws {
        var stopped = try transfer()
        stopped.stop = .decided
        let head = [("ETag", "\"v\""), ("Content-Length", "1000")]
        let (judgement, progress) = judge(stopped, result(.stopped, 200, head, .file(path: "p", length: 70)))
        guard case .interrupted = judgement else { throw Unexpected() }
        #expect(progress.kept.point?.offset == 70)
        #expect(progress.attempts.attempts == 0)
        guard case .interrupted = judge(stopped, result(.failed(.reset), nil, [], .none)).0 else { throw Unexpected() }
    }

    @Test
    func `A 304 to a condition is distinguished from an unrequested one`() throws {
        let conditional = try transfer { _ in
        } _: {
            $0.ifNoneMatch = "\"v\""
        }
        #expect(try finished(judge(conditional, result(.complete, 304, [], .none)).0).0 == .notModified)
        let dated = try transfer { _ in
        } _: {
            $0.ifModifiedSince = "Tue, 01 Dec 2026 00:00:00 GMT"
        }
        #expect(dated.ownHeaders.contains("If-Modified-Since"))
        #expect(try finished(judge(dated, result(.complete, 304, [], .none)).0).0 == .notModified)
        let older = [("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")]
        guard case .send(.unconditional) = judge(dated, result(.complete, 304, older, .none)).0 else {
            throw Unexpected()
        }
        #expect(try finished(judge(try transfer(), result(.complete, 304, [], .none)).0).0 == .httpError)
        let lying = result(.complete, 200, [("Content-Length", "1"), ("Content-Length", "2")])
        #expect(try finished(judge(try transfer(), lying).0).1.error?.code == .cannotParseResponse)
    }

    @Test
    func `A postponed host look-up costs no attempt, and the bytes are kept`() throws {
        let transfer = try transfer(resuming: 500)
        let (judgement, progress) = judge(transfer, result(.failed(.nameNotAsked), nil, [], .none))
        guard case .retry(let at, let waitsForConnectivity) = judgement else {
            Issue.record("\(judgement)")
            return
        }
        #expect(at == now + .milliseconds(7500))
        #expect(!waitsForConnectivity && progress.attempts.attempts == 0 && progress.lastAttempt == nil)
    }
}
