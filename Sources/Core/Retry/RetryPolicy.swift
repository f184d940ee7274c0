package import Formats

/// The rule for retrying failed attempts (spec: `retryPolicy` of a session).
package enum RetryPolicy: Hashable, Sendable {
    /// Transport faults only, like `URLSession`; a status is a response, never a fault.
    case apple
    /// The default: also the statuses in ``robustStatusCodes``, for up to 5 attempts.
    case robust
    case custom(Settings)

    package struct Settings: Shape {
        /// Statuses that are retried.
        package var statusCodes = RetryPolicy.robustStatusCodes
        /// The maximum of all attempts, whatever ended them; `nil` for no limit but the resource timeout.
        package var maximumAttempts: Int?
        /// The time after the start of the first attempt in which another one may start, in seconds; `nil` for no limit
        /// but the resource timeout.
        package var maximumElapsedTime: Double?
        /// The maximum of the first wait, in seconds.
        package var initialDelay = 1.0
        /// The maximum of every wait, in seconds.
        package var maximumDelay = 600.0

        package init() {}

        package init(
            statusCodes: Set<Int> = RetryPolicy.robustStatusCodes, maximumAttempts: Int? = nil,
            maximumElapsedTime: Double? = nil, initialDelay: Double = 1, maximumDelay: Double = 600
        ) {
            self.statusCodes = statusCodes
            self.maximumAttempts = maximumAttempts
            self.maximumElapsedTime = maximumElapsedTime
            self.initialDelay = initialDelay
            self.maximumDelay = maximumDelay
        }

        package mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted("statusCodes", &statusCodes)
            members.optional("maximumAttempts", &maximumAttempts)
            members.optional("maximumElapsedTime", &maximumElapsedTime)
            members.defaulted("initialDelay", &initialDelay)
            members.defaulted("maximumDelay", &maximumDelay)
        }
    }

    package static let robustStatusCodes: Set<Int> = [408, 425, 429, 500, 502, 503, 504]
    /// The default maximum of attempts that end with a status, or with a name that does not exist.
    package static let attemptsOfOneKind = 5
    /// The maximum number of restarts because of changed versions without progress in between.
    package static let restartLimit = 3
    /// The maximum number of local faults without progress in between: a quarter of an hour with the defaults.
    package static let localFaultLimit = 12

    package var settings: Settings {
        switch self {
        case .apple: Settings(statusCodes: [])
        case .robust: Settings()
        case .custom(let settings): settings
        }
    }

    /// Whether a response with this status may be followed by another attempt.
    package func retries(status: Int) -> Bool { settings.statusCodes.contains(status) }

    /// The wait before the next attempt: the fraction `jitter` of `min(maximumDelay, initialDelay · 2ⁿ)`. Both delays
    /// are at least 0.1 s.
    ///
    /// Full jitter, so that transfers that failed together do not retry together.
    ///
    /// - Parameters:
    ///   - failures: Consecutive failures without progress, including the last one; at least 1.
    ///   - jitter: A number in `0..<1`, passed in to keep this function pure.
    /// - SeeAlso: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    package func delay(afterFailures failures: Int, jitter: Double) -> Duration {
        let settings = settings
        // Sessions of earlier versions may have a smaller value than ``leastDelay``.
        let ceiling = min(max(Self.leastDelay, settings.maximumDelay), Self.longestDelay)
        var delay = min(max(Self.leastDelay, settings.initialDelay), ceiling)
        // Doubling in steps prevents an overflow by a huge count.
        for _ in 1..<max(2, min(failures, 64)) where failures > 1 { delay = min(ceiling, delay * 2) }
        return .milliseconds(Int64((delay * min(max(0, jitter), 1) * 1000).rounded()))
    }

    /// The smallest maximum of a wait in seconds, so that no origin is queried hundreds of times per second.
    private static let leastDelay = 0.1
    /// Ten years in seconds: more than any timeout, and below the overflow.
    private static let longestDelay = 315_360_000.0
}

extension RetryPolicy: MemberValue {
    package static var kind: String { "the name of a preset or an object with the settings" }

    package static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> RetryPolicy? {
        switch json {
        case .string("apple"): .apple
        case .string("robust"): .robust
        case .object: Settings.read(json, nil, position).map(RetryPolicy.custom)
        default: position.reject(kind, json)
        }
    }

    package func write(to writer: inout JSONWriter) {
        switch self {
        case .apple: writer.string("apple")
        case .robust: writer.string("robust")
        case .custom(let settings): writer.value(settings)
        }
    }
}
