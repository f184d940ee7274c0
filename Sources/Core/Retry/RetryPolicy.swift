/// When a broken attempt is followed by another (spec: `retryPolicy` of a session).
package enum RetryPolicy: Hashable, Sendable {
    /// Transport faults alone, as `URLSession` does; a status is an answer, never a fault.
    case apple
    /// The default: besides, the statuses in ``robustStatusCodes`` for up to 5 attempts.
    case robust
    case custom(Settings)

    package struct Settings: Hashable, Sendable, Codable {
        /// Statuses that are tried again.
        package var statusCodes: Set<Int>
        /// All attempts, whatever ended them, from the first try; nil for no limit but the resource timeout.
        package var maximumAttempts: Int?
        /// Seconds; the ceiling of the first wait.
        package var initialDelay: Double
        /// Seconds; the ceiling of every wait.
        package var maximumDelay: Double

        package init(
            statusCodes: Set<Int> = RetryPolicy.robustStatusCodes, maximumAttempts: Int? = nil,
            initialDelay: Double = 1, maximumDelay: Double = 600
        ) {
            self.statusCodes = statusCodes
            self.maximumAttempts = maximumAttempts
            self.initialDelay = initialDelay
            self.maximumDelay = maximumDelay
        }

        private enum CodingKeys: String, CodingKey { case statusCodes, maximumAttempts, initialDelay, maximumDelay }

        package init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            statusCodes = try container.decodeIfPresent(Set<Int>.self, forKey: .statusCodes) ?? robustStatusCodes
            maximumAttempts = try container.decodeIfPresent(Int.self, forKey: .maximumAttempts)
            initialDelay = try container.decodeIfPresent(Double.self, forKey: .initialDelay) ?? 1
            maximumDelay = try container.decodeIfPresent(Double.self, forKey: .maximumDelay) ?? 600
        }

        /// Codes in ascending order, so that equal settings are equal bytes.
        package func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(statusCodes.sorted(), forKey: .statusCodes)
            try container.encodeIfPresent(maximumAttempts, forKey: .maximumAttempts)
            try container.encode(initialDelay, forKey: .initialDelay)
            try container.encode(maximumDelay, forKey: .maximumDelay)
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

    /// The wait before the next attempt: `min(maximumDelay, initialDelay · 2ⁿ)`, of which `jitter` is taken.
    ///
    /// Full jitter, so that transfers which failed together do not come back together.
    ///
    /// - Parameters:
    ///   - failures: Failures in a row without progress, the last one included; at least 1.
    ///   - jitter: A number in `0..<1`, passed in to keep this pure.
    /// - SeeAlso: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    package func delay(afterFailures failures: Int, jitter: Double) -> Duration {
        let settings = settings
        let ceiling = min(max(0, settings.maximumDelay), Self.longestDelay)
        var delay = min(max(0, settings.initialDelay), ceiling)
        // Doubling in steps keeps a huge count from overflowing; 0 stays 0.
        for _ in 1..<max(2, min(failures, 64)) where failures > 1 { delay = min(ceiling, delay * 2) }
        return .milliseconds(Int64((delay * min(max(0, jitter), 1) * 1000).rounded()))
    }

    /// Ten years in seconds: more than any timeout, less than what overflows.
    private static let longestDelay = 315_360_000.0
}

extension RetryPolicy: Codable {
    /// The name of a preset, or an object with the settings.
    package init(from decoder: any Decoder) throws {
        guard let name = try? decoder.singleValueContainer().decode(String.self) else {
            self = .custom(try Settings(from: decoder))
            return
        }
        switch name {
        case "apple": self = .apple
        case "robust": self = .robust
        default:
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "no retry policy has the name \(name)"))
        }
    }

    package func encode(to encoder: any Encoder) throws {
        switch self {
        case .apple, .robust:
            var container = encoder.singleValueContainer()
            try container.encode(self == .apple ? "apple" : "robust")
        case .custom(let settings): try settings.encode(to: encoder)
        }
    }
}
