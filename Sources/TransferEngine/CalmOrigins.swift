import Base
import Core

/// Origins that sent ENHANCE_YOUR_CALM (RFC 9113 section 7). For ten minutes, requests to them use HTTP/1.1, which
/// limits concurrent requests per connection to one.
final class CalmOrigins: Sendable {
    private static let time: Int64 = 600_000
    private static let maximum = 1000

    private let ends = Locked<[String: Int64]>([:])

    func note(_ url: ParsedURL, at now: Int64) {
        ends.withLock { ends in
            if ends.count >= Self.maximum { ends = ends.filter { $0.value > now } }
            guard ends.count < Self.maximum else { return }
            ends[url.origin] = now + Self.time
        }
    }

    func contains(_ url: ParsedURL, at now: Int64) -> Bool {
        ends.withLock { ends in (ends[url.origin] ?? .min) > now }
    }
}
