/// The rule by which a failed attempt is followed by another.
///
/// A client reads a word of a newer service as ``robust``.
public enum RetryPolicy: Sendable, Hashable {
    /// Retries after transport faults only, as `URLSession` does.
    case apple
    /// Retries after transport faults and usually transient statuses; the default.
    case robust
    /// The app's own settings.
    case custom(Settings)

    /// The settings of an app's own policy.
    public struct Settings: Shape {
        /// Statuses that are retried.
        public var statusCodes: [Int64] = [408, 425, 429, 500, 502, 503, 504]
        /// The maximum number of attempts, from the first; `nil` for no limit but the resource timeout.
        public var maximumAttempts: Int64?
        /// Seconds after the beginning of the first attempt in which another one may begin; `nil` for no limit but the
        /// resource timeout.
        public var maximumElapsedTime: Double?
        /// The upper limit of the first delay, in seconds.
        public var initialDelay = 1.0
        /// The upper limit of every delay, in seconds.
        public var maximumDelay = 600.0

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.defaulted(
                "statusCodes", &statusCodes,
                .distinct(400...599, count: 0...200, "No status may occur twice."))
            members.nullable("maximumAttempts", &maximumAttempts, 1...1_000_000)
            members.nullable("maximumElapsedTime", &maximumElapsedTime, 0.001...315_360_000)
            members.defaulted("initialDelay", &initialDelay, 0.1...86_400)
            members.defaulted("maximumDelay", &maximumDelay, 0.1...86_400)
        }
    }
}

extension RetryPolicy: MemberValue {
    public static var kind: String { "\"robust\", \"apple\" or an object with the settings" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> RetryPolicy? {
        switch json {
        case .string("apple"): return .apple
        case .string("robust"): return .robust
        case .object: return Settings.read(json, nil, position).map(RetryPolicy.custom)
        case .string where position.mode == .tolerant: return .robust
        default:
            position.report("This must be \(kind).")
            return nil
        }
    }

    public func write(to writer: inout JSONWriter) {
        switch self {
        case .apple: writer.value("apple")
        case .robust: writer.value("robust")
        case .custom(let settings): writer.value(settings)
        }
    }
}
