import Formats
import Testing

@testable import Core

/// Values survive a round trip to the database, and earlier versions' values can be read.
@Suite struct DocumentTests {
    /// The document of a value, after reading it.
    func roundTrip<Value: MemberValue & Equatable>(_ value: Value) throws -> String {
        #expect(Value.inOrder(value.bytesAtRest) == value)
        #expect(try Value(atRest: value.bytesAtRest) == value)
        return String(decoding: value.bytesAtRest, as: UTF8.self)
    }

    @Test func `A document of another version is read, and a malformed one is refused`() throws {
        let text = #"{"value":"0a","colour":["red"],"algorithm":"sha-512"}"#
        #expect(ContentDigest.inOrder(Array(text.utf8)) == nil)
        #expect(try ContentDigest(atRest: Array(text.utf8)) == ContentDigest(algorithm: .sha512, value: "0a"))
        let whole = ContentDigest(algorithm: .sha512, value: "a\"b\u{0}é").bytesAtRest
        #expect(ContentDigest.inOrder(whole)?.value == "a\"b\u{0}é")
        for end in 0..<whole.count {
            #expect(throws: JSONError.self) { try ContentDigest(atRest: Array(whole[..<end])) }
        }
        #expect(throws: JSONError.self) { try ContentDigest(atRest: whole + whole) }
        for wrong in [
            #"{"algorithm":"sha-512","value":12}"#, #"{"algorithm":"sha-512""value":"0a"}"#,
            #"{,"algorithm":"sha-512","value":"0a"}"#,
        ] {
            #expect(throws: JSONError.self) { try ContentDigest(atRest: Array(wrong.utf8)) }
        }
    }

    @Test func `A retry policy is a name or an object`() throws {
        #expect(try roundTrip([RetryPolicy.apple, .robust]) == #"["apple","robust"]"#)
        let custom = RetryPolicy.custom(.init(statusCodes: [503, 418], maximumAttempts: 3, initialDelay: 2))
        #expect(
            try roundTrip(custom)
                == #"{"statusCodes":[418,503],"maximumAttempts":3,"initialDelay":2,"maximumDelay":600}"#)
        #expect(try RetryPolicy(atRest: Array("{}".utf8)) == .custom(.init()))
        #expect(throws: JSONError.self) { try RetryPolicy(atRest: Array(#""eager""#.utf8)) }
    }

    @Test func `An interval is a word or a number`() throws {
        #expect(
            try roundTrip([BackgroundRefresh.Interval.never, .minimum, .seconds(1800)]) == #"["never","minimum",1800]"#)
        #expect(throws: JSONError.self) { try BackgroundRefresh.Interval(atRest: Array(#""often""#.utf8)) }
    }

    @Test func `Machines and records survive a round trip`() throws {
        for state in LaunchStateTests.states { _ = try roundTrip(state) }
        #expect(
            try roundTrip(LaunchState.pending(attempts: 1, nextAttemptAt: Timestamp(milliseconds: 4)))
                == #"{"pending":{"attempts":1,"nextAttemptAt":4}}"#)
        #expect(throws: JSONError.self) { try LaunchState(atRest: Array(#"{"sleeping":{}}"#.utf8)) }
        var attachment = Core.Attachment()
        try attachment.handle(.take(ttl: .seconds(30), launchId: "lnch_1", takeover: false), at: now)
        try attachment.handle(.take(ttl: .seconds(30), launchId: nil, takeover: true), at: now)
        _ = try roundTrip(attachment)
        var refresh = BackgroundRefresh()
        try refresh.handle(.setInterval(.seconds(5000)), identifier: "a", at: now)
        try refresh.handle(.begin(launchId: "l"), identifier: "a", at: now)
        try refresh.handle(.sent(launchId: "l"), identifier: "a", at: now)
        _ = try roundTrip(refresh)
        var ledger = AttemptLedger()
        ledger.record(.transport, keptOffset: 1 << 20)
        ledger.firstAttemptAt = now
        _ = try roundTrip(ledger)
        var result = TaskResult()
        result.error = TaskError(.timedOut, failingURL: "u", underlying: .init(domain: "d", code: "c", message: "m"))
        result.response = TaskResponse {
            $0.statusCode = 200
            $0.headers = HTTPFields([HTTPField(name: "A", value: "b"), HTTPField(name: "C", value: "")])
        }
        result.progress.attempts = ledger
        result.progress.transactions = [TransactionMetrics(url: "u", fetchStartDate: now), TransactionMetrics()]
        result.progress.redirects = [RedirectRecord(statusCode: 301, url: "v")]
        _ = try roundTrip(result)
        _ = try roundTrip(
            TaskSpecification {
                $0.metadata = ["a": "b"]
                $0.priority = 0.25
                $0.earliestBeginDate = now
                $0.retryOf = 3
            })
        _ = try roundTrip(ConditionsTests.worst)
        _ = try roundTrip(
            PlannedMove {
                $0.destination = Destination(root: "r", path: "p", replace: true)
                $0.digest = ContentDigest(algorithm: .sha512, value: "0a")
                $0.inode = .max
                $0.isCopying = true
            })
        _ = try roundTrip(
            Answer(
                disposition: .useCredential, credential: Credential(user: "u", password: "\0", persistence: .permanent))
        )
        _ = try roundTrip(
            ResumePoint {
                $0.url = "u"
                $0.entityTag = "\"a\""
                $0.totalLength = 9
                $0.digest = "0a"
            })
    }
}
