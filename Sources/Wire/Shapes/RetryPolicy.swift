/// When a broken attempt is followed by another.
public enum RetryPolicy: Sendable, Hashable {
    /// Transport faults alone, as `URLSession` does.
    case apple
    /// Transport faults, and the statuses that usually pass; the default.
    case robust
    /// The app's own.
    case custom(Settings)

    /// The numbers of an app's own policy.
    public struct Settings: Sendable, Hashable {
        /// Statuses that are tried again.
        public var statusCodes: [Int64]
        /// All attempts, from the first try; `nil` for no limit but the resource timeout.
        public var maximumAttempts: Int64?
        /// Seconds; the ceiling of the first wait.
        public var initialDelay: Double
        /// Seconds; the ceiling of every wait.
        public var maximumDelay: Double

        /// Makes settings, by default those of ``RetryPolicy/robust`` without its limit of attempts.
        public init(
            statusCodes: [Int64] = [408, 425, 429, 500, 502, 503, 504], maximumAttempts: Int64? = nil,
            initialDelay: Double = 1, maximumDelay: Double = 600
        ) {
            self.statusCodes = statusCodes
            self.maximumAttempts = maximumAttempts
            self.initialDelay = initialDelay
            self.maximumDelay = maximumDelay
        }
    }
}

extension RetryPolicy.Settings: JSONReadable, JSONWritable {
    /// Reads settings.
    public init(reading reader: inout ObjectReader) {
        let standard = RetryPolicy.Settings()
        statusCodes = reader.integers("statusCodes", default: standard.statusCodes, in: 400...599, count: 0...200)
        maximumAttempts = reader.optionalInteger("maximumAttempts", in: 1...1_000_000)
        initialDelay = reader.number("initialDelay", default: standard.initialDelay, in: 0...86_400)
        maximumDelay = reader.number("maximumDelay", default: standard.maximumDelay, in: 0...86_400)
        if reader.mode == .strict, Set(statusCodes).count != statusCodes.count {
            reader.report("statusCodes", "No status may stand here twice.")
        }
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("statusCodes", statusCodes)
            writer.member("maximumAttempts", maximumAttempts)
            writer.member("initialDelay", initialDelay)
            writer.member("maximumDelay", maximumDelay)
        }
    }
}

extension RetryPolicy: JSONWritable {
    /// Writes a word or an object.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .apple: writer.value("apple")
        case .robust: writer.value("robust")
        case .custom(let settings): writer.value(settings)
        }
    }
}

extension ObjectReader {
    /// A retry policy that may be absent: `"robust"`, `"apple"` or an object.
    mutating func retryPolicy(_ name: String) -> RetryPolicy {
        switch peek(name) {
        case .object: return .custom(object(name))
        case .string("apple"):
            _ = take(name)
            return .apple
        case .string("robust"), nil:
            _ = take(name)
            return .robust
        default:
            _ = take(name)
            report(name, "This must be \"robust\", \"apple\" or an object with the settings.")
            return .robust
        }
    }
}
