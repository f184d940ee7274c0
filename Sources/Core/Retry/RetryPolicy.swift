package import Formats

/// When a broken attempt is followed by another (spec: `retryPolicy` of a session).
package enum RetryPolicy: Hashable, Sendable {
    /// Transport faults alone, as `URLSession` does; a status is an answer, never a fault.
    case apple
    /// The default: besides, the statuses in ``robustStatusCodes`` for up to 5 attempts.
    case robust
    case custom(Settings)

    package struct Settings: Shape {
        /// Statuses that are tried again.
        package var statusCodes = RetryPolicy.robustStatusCodes
        /// All attempts, whatever ended them, from the first try; nil for no limit but the resource timeout.
        package var maximumAttempts: Int?
        /// Seconds after the beginning of the first attempt in which another one may begin; nil for no limit but the
        /// resource timeout.
        package var maximumElapsedTime: Double?
        /// Seconds; the ceiling of the first wait.
        package var initialDelay = 1.0
        /// Seconds; the ceiling of every wait.
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
    /// How many attempts may end with a status, or with a name that does not exist, where nothing else is set.
    package static let attemptsOfOneKind = 5
    /// How often bytes that turned out to be of another version may be thrown away without progress between.
    package static let restartLimit = 3
    /// How many faults of this machine a task survives without progress between: a quarter of an hour where nothing else
    /// is set.
    package static let localFaultLimit = 12

    package var settings: Settings {
        switch self {
        case .apple: Settings(statusCodes: [])
        case .robust: Settings()
        case .custom(let settings): settings
        }
    }

    /// Whether an answer with this status may be followed by another attempt at all.
    package func retries(status: Int) -> Bool { settings.statusCodes.contains(status) }

    /// The wait before the next attempt: `min(maximumDelay, initialDelay · 2ⁿ)`, of which `jitter` is taken. Both delays
    /// are at least 0.1 s.
    ///
    /// Full jitter, so that transfers which failed together do not come back together.
    ///
    /// - Parameters:
    ///   - failures: Failures in a row without progress, the last one included; at least 1.
    ///   - jitter: A number in `0..<1`, passed in to keep this pure.
    /// - SeeAlso: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    package func delay(afterFailures failures: Int, jitter: Double) -> Duration {
        let settings = settings
        // Sessions of earlier versions may have less than ``leastDelay``.
        let ceiling = min(max(Self.leastDelay, settings.maximumDelay), Self.longestDelay)
        var delay = min(max(Self.leastDelay, settings.initialDelay), ceiling)
        // Doubling in steps keeps a huge count from overflowing.
        for _ in 1..<max(2, min(failures, 64)) where failures > 1 { delay = min(ceiling, delay * 2) }
        return .milliseconds(Int64((delay * min(max(0, jitter), 1) * 1000).rounded()))
    }

    /// Seconds; the least ceiling of a wait, so that no origin is asked hundreds of times a second.
    private static let leastDelay = 0.1
    /// Ten years in seconds: more than any timeout, less than what overflows.
    private static let longestDelay = 315_360_000.0
}

extension RetryPolicy: MemberValue {
    package static var kind: String { "the name of a preset or an object with the settings" }

    package static func read(_ json: JSON, _ rule: Never?, _ place: Place) -> RetryPolicy? {
        switch json {
        case .string("apple"): .apple
        case .string("robust"): .robust
        case .object: Settings.read(json, nil, place).map(RetryPolicy.custom)
        default: place.reject(kind, json)
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
