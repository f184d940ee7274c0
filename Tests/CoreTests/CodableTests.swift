import FoundationEssentials
import Testing

@testable import Core

/// What is kept at rest comes back as it was, and in the shape that the API uses where it has one.
@Suite struct CodableTests {
    func roundTrip<Value: Codable & Equatable>(_ value: Value) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let data = try encoder.encode(value)
        #expect(try JSONDecoder().decode(Value.self, from: data) == value)
        return String(decoding: data, as: UTF8.self)
    }

    @Test func `retry policies are a name or an object`() throws {
        #expect(try roundTrip([RetryPolicy.apple, .robust]) == #"["apple","robust"]"#)
        let custom = RetryPolicy.custom(.init(statusCodes: [503, 418], maximumAttempts: 3, initialDelay: 2))
        #expect(
            try roundTrip(custom)
                == #"{"initialDelay":2,"maximumAttempts":3,"maximumDelay":600,"statusCodes":[418,503]}"#)
        let empty = try JSONDecoder().decode(RetryPolicy.self, from: Data("{}".utf8))
        #expect(empty == .custom(.init()))
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(RetryPolicy.self, from: Data(#""eager""#.utf8))
        }
    }

    @Test func `intervals are a word or a number`() throws {
        #expect(
            try roundTrip([BackgroundRefresh.Interval.never, .minimum, .seconds(1800)]) == #"["never","minimum",1800]"#)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(BackgroundRefresh.Interval.self, from: Data(#""often""#.utf8))
        }
    }

    @Test func `machines and records survive`() throws {
        for state in LaunchStateTests.states { _ = try roundTrip(state) }
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
        _ = try roundTrip(ledger)
        _ = try roundTrip(ConditionsTests.worst)
        _ = try roundTrip(
            ResumePoint(
                url: "u", entityTag: "\"a\"", lastModified: "d", totalLength: 9, offset: 5, digest: "0a"))
        _ = try roundTrip(WaitingReason(kind: .window, detail: "d", until: now))
        _ = try roundTrip(head(200, [("A", "b")]))
    }
}
