/// How often an app wants to be woken to fetch.
public enum FetchInterval: Sendable, Hashable {
    /// Not at all; the default.
    case never
    /// As often as the service does it: every 900 s.
    case minimum
    /// Not more often than this many seconds, at least 900.
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
        default:
            let seconds = json.numberValue
            if let seconds, position.mode == .tolerant || (shortest...315_360_000).contains(seconds) {
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

/// What `PUT /v1/app/background-refresh` takes.
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

/// An app's background refresh as the service answers it.
public struct BackgroundRefresh: Shape {
    /// How often the app wants it.
    public var minimumBackgroundFetchInterval = FetchInterval.never
    /// Whether it is allowed.
    public var backgroundRefreshStatus = BackgroundRefreshStatus()
    /// When the next fetch is; `nil` when there will be none.
    public var nextFetchAt: String?
    /// Why then, or why not, in words.
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

/// A fetch of the past.
public struct PastFetch: Shape {
    public var launchId = ""
    /// When it was sent.
    public var at = ""
    /// How many seconds the answer took.
    public var duration: Double?
    /// What came of it; `nil` while it is open.
    public var result: LaunchCompletion.FetchResult?

    public init() {}

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("launchId", &launchId)
        members.member("at", &at)
        members.nullable("duration", &duration)
        members.nullable("result", &result)
    }
}
