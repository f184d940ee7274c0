import Core
import TestSupport
import Testing

/// Slow origins: O-47 to O-49.
extension Misdeed {
    private static let impatient = retrying([:], ["timeoutIntervalForRequest": 3])

    private static let whole = Resource.generated(seed: 1, length: 200_000)

    static let timing: [Misdeed] = [
        Misdeed(
            "O-47", "sends 2 bytes a second", of: .generated(seed: 1, length: 100_000),
            always: [.trickle(size: 1, pause: .milliseconds(500))],
            configuration: retrying([:], ["timeoutIntervalForRequest": 4, "timeoutIntervalForResource": 6]),
            owed: .failed(-1001, attempts: nil) {
                // Single bytes keep the attempt alive; the task's own timeout ends it.
                try require($0.requests.count == 1, "\($0.requests.count) requests")
            }),
        Misdeed(
            "O-47", "sends a part, and the next much later", of: whole,
            turns: [[.trickle(size: 100_000, pause: .seconds(60))]], configuration: impatient,
            owed: .content(bytes(0..<200_000), attempts: 2, ranges: ["", "bytes=100000-"], faults: ["timedOut", ""])),
        Misdeed(
            "O-48", "accepts and never answers", turns: [[.noAnswer(.silence)]], configuration: impatient,
            owed: .content(bytes(0..<200), attempts: 2, faults: ["timedOut", ""])),
        Misdeed(
            "O-49", "sends 99 % and stalls, each time", of: whole,
            turns: [[.stall(after: 198_000)], [.stall(after: 1980)], [.stall(after: 0)]], configuration: impatient,
            owed: .content(
                bytes(0..<200_000), attempts: 4, ranges: ["", "bytes=198000-", "bytes=199980-", "bytes=199980-"],
                faults: ["timedOut", "timedOut", "timedOut", ""])),
        Misdeed(
            "O-49", "sends 99 % and stalls until the task's time is over", of: whole,
            turns: [[.stall(after: 198_000)]] + Array(repeating: [.stall(after: 0)], count: 100),
            configuration: retrying(
                [:], ["timeoutIntervalForRequest": 2, "timeoutIntervalForResource": 9]),
            owed: .failed(-1001, attempts: nil) {
                try require(Set($0.ranges.dropFirst()) == ["bytes=198000-"], "\($0.ranges)")
            }),
    ]
}
