import Base
import Core
import Formats
import Testing

@testable import Store

@Suite struct DocumentTests {
    private let documents = Documents(sealer: Sealer(masterKey: Array(repeating: 7, count: 32)))

    /// A value after a round trip.
    private func returned<Value: Shape>(_ value: Value) throws -> Value {
        try documents.decode(Value.self, documents.encode(value))
    }

    /// Expects that no property is `nil`: a forgotten one would not be missed.
    private func expectFull(_ value: Any, _ path: String = "") {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional || mirror.displayStyle == .collection {
            #expect(!mirror.children.isEmpty, "\(path) is empty")
        }
        for (index, child) in mirror.children.enumerated() {
            expectFull(child.value, "\(path).\(child.label ?? "\(index)")")
        }
    }

    private static let text = "quote \" backslash \\ line \n tab \t nul \0 é 🎈"

    private static var fullError: TaskError {
        var error = TaskError(
            .timedOut, text, failingURL: "http://a/", policy: "p",
            underlying: TaskError.Underlying(domain: "curl", code: "28", message: "m"),
            backgroundTaskCancelledReason: 1)
        error.networkUnavailableReason = 2
        return error
    }

    private static var fullTransaction: TransactionMetrics {
        var transaction = TransactionMetrics()
        transaction.url = "http://a/"
        transaction.fetchStartDate = Timestamp(milliseconds: -1)
        transaction.statusCode = 200
        transaction.error = text
        transaction.offset = .max
        for (index, path) in [
            \TransactionMetrics.domainLookupStartDate, \.domainLookupEndDate, \.connectStartDate,
            \.secureConnectionStartDate, \.secureConnectionEndDate, \.connectEndDate, \.requestStartDate,
            \.requestEndDate, \.responseStartDate, \.responseEndDate,
        ].enumerated() { transaction[keyPath: path] = Timestamp(milliseconds: Int64(index)) }
        transaction.networkProtocolName = "h2"
        transaction.negotiatedTLSProtocolVersion = "TLSv1.3"
        transaction.negotiatedTLSCipherSuite = "TLS_AES_256_GCM_SHA384"
        transaction.isReusedConnection = true
        transaction.isProxyConnection = true
        transaction.localAddress = "::1"
        transaction.localPort = 1
        transaction.remoteAddress = "::2"
        transaction.remotePort = 2
        transaction.countOfRequestHeaderBytesSent = 3
        transaction.countOfRequestBodyBytesSent = 4
        transaction.countOfResponseHeaderBytesReceived = 5
        transaction.countOfResponseBodyBytesReceived = 6
        return transaction
    }

    private static var fullResponse: TaskResponse {
        TaskResponse {
            $0.statusCode = 200
            $0.headers = HTTPFields([HTTPField(name: "A", value: "\u{1}")])
            $0.droppedHeaders = ["B"]
            $0.mimeType = "t/x"
            $0.expectedContentLength = .max
            $0.suggestedFilename = "f"
            $0.url = "http://a/"
        }
    }

    private static var fullPoint: ResumePoint {
        ResumePoint {
            $0.url = "http://a/"
            $0.requestedURL = "http://b/"
            $0.entityTag = "\"x\""
            $0.lastModified = "then"
            $0.lastModifiedIsStrong = true
            $0.totalLength = 9
            $0.offset = 4
            $0.digest = "ab"
        }
    }

    private static var fullRecord: SegmentRecord {
        SegmentRecord {
            $0.total = 100
            $0.held = [HeldRange(0, 10, source: 1), HeldRange(20, 100, source: 0)]
            $0.dropped = [2]
        }
    }

    private static var fullUpload: MultipartUpload {
        MultipartUpload {
            $0.row = 4
            $0.id = text
            $0.key = "k"
            $0.mark = "m"
            $0.expected = 12
            $0.parts = ["\"a\"", "\"b\""]
            $0.digests = [MultipartUpload.DigestState(.md5, state: "ef")]
            $0.whole = MultipartUpload.Whole {
                $0.length = 12
                $0.digest = ContentDigest(algorithm: .sha256, value: "ab")
                $0.response = fullResponse
                $0.outcome = .httpError
            }
            $0.readable = MultipartUpload.Readable {
                $0.joined = 1
                $0.response = fullResponse
            }
        }
    }

    private static var fullProgress: TaskProgress {
        var progress = TaskProgress()
        progress.attempts.record(.status(503, retryAfter: nil), keptOffset: 1 << 20)
        progress.attempts.firstAttemptAt = Timestamp(milliseconds: 5)
        progress.attempts.record(.restart, keptOffset: 0)
        progress.attempts.record(.local, keptOffset: 0)
        progress.lastAttempt = AttemptRecord(
            number: 2, startedAt: Timestamp(milliseconds: 5), endedAt: Timestamp(milliseconds: 9), offset: 7,
            statusCode: 503, error: fullError)
        progress.version = 6
        progress.bytesFetchedTwice = 2
        progress.diskPauses = 3
        progress.diskLosses = 4
        progress.redirects = [RedirectRecord(statusCode: 302, url: "http://b/")]
        progress.currentURL = "http://b/"
        progress.transactions = [fullTransaction, fullTransaction]
        progress.countOfBytesSent = .min
        progress.countOfBytesReceived = 4
        progress.isConfirmed = true
        progress.restartCause = "c"
        progress.adoptedFile = "f"
        progress.node = "n"
        progress.kept = .segments(fullRecord, fullPoint, source: 1)
        progress.avoidsSegments = true
        progress.uploadURL = "http://u/"
        progress.uploadVersion = 8
        progress.uploadOffset = 5
        progress.uploadRequest = "PUT http://u/"
        progress.credentialsTried = ["cred_1", "cred_2"]
        let space = ProtectionSpace(
            host: "a", port: 1, scheme: "http", realm: "r", authenticationMethod: .basic, isProxy: true,
            serverPublicKey: "k")
        progress.authentication = [
            AuthenticationStep(questionId: "qstn_1", disposition: .useCredential, space: space)
        ]
        return progress
    }

    @Test func `A task's result with all members survives a round trip`() throws {
        var result = TaskResult(progress: Self.fullProgress)
        result.error = Self.fullError
        result.response = Self.fullResponse
        result.cacheStatus = .hit
        result.contentLength = 10
        result.contentDigest = ContentDigest(algorithm: .sha256, value: "ab")
        expectFull(result)
        #expect(try returned(result) == result)
    }

    @Test func `Bytes kept for the next attempt survive a round trip`() throws {
        expectFull(Self.fullUpload)
        let point = ResumePoint { $0.offset = 7 }
        let all: [Kept] = [
            .none, .file(point, source: 0), .file(Self.fullPoint, source: 3),
            .segments(Self.fullRecord, point, source: 0),
            .parts(Self.fullUpload, nil), .parts(Self.fullUpload, Self.fullPoint),
        ]
        for kept in all {
            var progress = TaskProgress()
            progress.kept = kept
            #expect(try returned(progress) == progress)
        }
    }

    @Test func `Progress that an earlier release stored keeps its bytes`() throws {
        func kept(_ members: String) throws -> Kept {
            let document = documents.encode(TaskProgress()).dropLast() + Array(",\(members)}".utf8)
            return try documents.decode(TaskProgress.self, Array(document)).kept
        }
        let point = #""resume":{"url":"u","lastModifiedIsStrong":false,"offset":5}"#
        let expected = ResumePoint {
            $0.url = "u"
            $0.offset = 5
        }
        #expect(try kept(#"\#(point),"durableOffset":5,"source":2"#) == .file(expected, source: 2))
        let record = SegmentRecord {
            $0.total = 9
            $0.held = [HeldRange(0, 5), HeldRange(6, 9)]
        }
        let ranges = #""segments":{"total":9,"held":[{"offset":0,"end":5},{"offset":6,"end":9}]}"#
        #expect(try kept(#"\#(point),"durableOffset":8,\#(ranges)"#) == .segments(record, expected, source: 0))
        // Without a resume point the bytes were useless before, too.
        #expect(try kept(#""durableOffset":8"#) == Kept.none)
    }

    @Test func `A result without members survives a round trip`() throws {
        let result = TaskResult(progress: TaskProgress())
        #expect(try returned(result) == result)
    }

    @Test func `A specification with all members survives a round trip`() throws {
        var task = TaskSpecification(
            kind: .upload,
            request: TransferRequest(
                url: "https://a/", method: "PUT", headers: HTTPFields([HTTPField(name: "X", value: "y")]),
                sensitiveHeaders: ["X"]))
        task.request.cachePolicy = .returnCacheDataElseLoad
        task.request.object = ObjectReference(bucket: "b", key: Self.text, versionId: "v")
        task.body = "body_1"
        task.bodyObject = ObjectReference(bucket: "b", key: "k", versionId: "v")
        task.bodyLength = 3
        task.clientTaskId = Self.text
        task.group = "g"
        task.taskDescription = "d"
        task.metadata = ["a": "b", "": "\u{0}"]
        task.priority = 0.1
        task.earliestBeginDate = Timestamp(milliseconds: .max)
        task.confirmBeforeStart = true
        task.countOfBytesClientExpectsToSend = 1
        task.countOfBytesClientExpectsToReceive = 2
        task.expectedDigest = ContentDigest(algorithm: .md5, value: "cd")
        task.maximumContentLength = 3
        task.ifNoneMatch = "\"e\""
        task.ifModifiedSince = "Tue, 01 Dec 2026 00:00:00 GMT"
        task.acceptableStatusCodes = [StatusRange(200, 204), StatusRange(304, 304)]
        task.failOnHTTPError = true
        task.destination = Destination(root: "r", path: "p", replace: true)
        task.destinationObject = ObjectDestination {
            $0.bucket = "b"
            $0.key = "k"
            $0.replace = true
            $0.storageClass = "s"
            $0.metadata = ["a": "b"]
        }
        task.segments = .automatic
        task.mirrors = ["https://b/"]
        task.pieces = PieceDigests(length: 1024, algorithm: .sha512, values: ["ab"])
        task.traceparent = "00-"
        task.retryOf = 4
        expectFull(task)
        #expect(try returned(task) == task)
        let bare = TaskSpecification(kind: .download, request: TransferRequest(url: "http://a/", method: "GET"))
        #expect(try returned(bare) == bare)
    }

    @Test func `A sealed document opens only in its own row and column`() throws {
        let task = TaskSpecification(kind: .download, request: TransferRequest(url: "http://a/", method: "GET"))
        let bytes = documents.encode(task, sealedAs: "here", if: true)
        #expect(bytes.first == 1)
        #expect(try documents.decode(TaskSpecification.self, bytes, sealedAs: "here") == task)
        #expect(throws: (any Error).self) {
            try documents.decode(TaskSpecification.self, bytes, sealedAs: "there")
        }
    }

    @Test func `A decoding error names the expected type and the position`() throws {
        func reason(_ text: String) -> JSONError? {
            do {
                _ = try documents.decode(StatusRange.self, Array(text.utf8))
                return nil
            } catch {
                return (error as? UnreadableDocument)?.reason
            }
        }
        #expect(reason(#"{"first":1,"last":2,"later":3}"#) == nil)
        #expect(reason(#"{"first":1}"#)?.faults.map(\.pointer) == ["/last"])
        #expect(reason(#"{"first":1,"last":"2"}"#)?.faults.map(\.pointer) == ["/last"])
        #expect(reason("[]")?.faults.map(\.pointer) == [""])
        #expect(reason("{")?.code == "malformed-json")
    }

    @Test func `The fingerprint of a request does not depend on the order of members`() {
        func fingerprint(_ headers: [(String, String)], _ metadata: [String: String]) -> [UInt8] {
            let fields = HTTPFields(headers.map { HTTPField(name: $0.0, value: $0.1) })
            var task = TaskSpecification(
                kind: .download, request: TransferRequest(url: "http://a/", method: "GET", headers: fields))
            task.metadata = metadata
            return documents.fingerprint(task, [], false)
        }
        let names = (0..<50).map { ("\($0)", "v") }
        let one = fingerprint([("A", "1"), ("B", "2")], Dictionary(uniqueKeysWithValues: names))
        #expect(one == fingerprint([("B", "2"), ("A", "1")], Dictionary(uniqueKeysWithValues: names.reversed())))
        #expect(one != fingerprint([("A", "2"), ("B", "1")], Dictionary(uniqueKeysWithValues: names)))
    }
}
