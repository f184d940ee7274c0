/// The minimum interval between an app's fetches.
///
/// A client reads a word of a newer service as ``minimum``: the service chooses the interval.
public enum FetchInterval: Sendable, Hashable {
    /// No fetches; the default.
    case never
    /// The shortest interval of the service, 900 s.
    case minimum
    /// At least this many seconds, 900 or more.
    case seconds(Double)

    /// The shortest interval in seconds.
    public static let shortest = 900.0
}

extension FetchInterval: MemberValue {
    public static var kind: String { "\"never\", \"minimum\" or at least 900 seconds" }

    public static func read(_ json: JSON, _ rule: Never?, _ position: JSONPosition) -> FetchInterval? {
        switch json {
        case .string("never"): return .never
        case .string("minimum"): return .minimum
        case .string where position.mode == .tolerant: return .minimum
        default:
            let seconds = json.numberValue
            if let seconds, position.mode == .tolerant || seconds >= shortest {
                return .seconds(seconds)
            }
            position.report("This must be \(kind).")
            return nil
        }
    }

    public func write(to writer: inout JSONWriter) {
        switch self {
        case .never: writer.value("never")
        case .minimum: writer.value("minimum")
        case .seconds(let seconds): writer.value(seconds)
        }
    }
}

/// The body of `PUT /v1/app/background-refresh`.
public struct BackgroundRefreshChange: Shape {
    public var minimumBackgroundFetchInterval = FetchInterval.never

    public init() {}

    public init(minimumBackgroundFetchInterval: FetchInterval) {
        self.minimumBackgroundFetchInterval = minimumBackgroundFetchInterval
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("minimumBackgroundFetchInterval", &minimumBackgroundFetchInterval)
    }
}

/// An app's background refresh as the service returns it.
public struct BackgroundRefresh: Shape {
    /// The interval that the app has set.
    public var minimumBackgroundFetchInterval = FetchInterval.never
    /// Whether refresh is allowed.
    public var backgroundRefreshStatus = BackgroundRefreshStatus()
    /// The time of the next fetch; `nil` if there is none.
    public var nextFetchAt: String?
    /// The reason for that time, or for its absence, in words.
    public var why = ""
    /// The last fetches, the latest first.
    public var history: [PastFetch] = []

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("minimumBackgroundFetchInterval", &minimumBackgroundFetchInterval)
        members.member("backgroundRefreshStatus", &backgroundRefreshStatus)
        members.nullable("nextFetchAt", &nextFetchAt)
        members.member("why", &why)
        members.member("history", &history)
    }
}

/// A past fetch.
public struct PastFetch: Shape {
    public var launchId = ""
    /// The time of its webhook.
    public var at = ""
    /// Seconds until its completion.
    public var duration: Double?
    /// The result of the fetch; `nil` while it is open.
    public var result: LaunchCompletion.FetchResult?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("launchId", &launchId)
        members.member("at", &at)
        members.nullable("duration", &duration)
        members.nullable("result", &result)
    }
}
