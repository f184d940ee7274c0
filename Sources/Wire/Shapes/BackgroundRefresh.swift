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

extension FetchInterval: JSONWritable {
    /// Writes a word or a number.
    public func write(to writer: inout JSONWriter) {
        switch self {
        case .never: writer.value("never")
        case .minimum: writer.value("minimum")
        case .seconds(let seconds): writer.value(seconds)
        }
    }
}

extension ObjectReader {
    /// A required interval: `"never"`, `"minimum"` or seconds.
    mutating func fetchInterval(_ name: String) -> FetchInterval {
        let value = take(name)
        switch value {
        case .string("never"): return .never
        case .string("minimum"): return .minimum
        case .integer, .number:
            let seconds = value?.numberValue ?? 0
            if !isStrict || (FetchInterval.shortest...315_360_000).contains(seconds) { return .seconds(seconds) }
        default: break
        }
        report(name, "This must be \"never\", \"minimum\" or at least 900 seconds.")
        return .never
    }
}

/// What `PUT /v1/app/background-refresh` takes.
public struct BackgroundRefreshChange: Sendable, Hashable, JSONWritable, JSONReadable {
    /// How often.
    public var minimumBackgroundFetchInterval: FetchInterval

    /// Makes one.
    public init(minimumBackgroundFetchInterval: FetchInterval) {
        self.minimumBackgroundFetchInterval = minimumBackgroundFetchInterval
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        minimumBackgroundFetchInterval = reader.fetchInterval("minimumBackgroundFetchInterval")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { $0.member("minimumBackgroundFetchInterval", minimumBackgroundFetchInterval) }
    }
}

/// An app's background refresh as the service answers it.
public struct BackgroundRefresh: Sendable, Hashable, JSONWritable, JSONReadable {
    /// How often the app wants it.
    public var minimumBackgroundFetchInterval: FetchInterval
    /// Whether it is allowed.
    public var backgroundRefreshStatus: BackgroundRefreshStatus
    /// When the next fetch is; `nil` when there will be none.
    public var nextFetchAt: String?
    /// Why then, or why not, in words.
    public var why: String
    /// The last fetches, the latest first.
    public var history: [PastFetch]

    /// Makes one.
    public init(
        minimumBackgroundFetchInterval: FetchInterval, backgroundRefreshStatus: BackgroundRefreshStatus,
        nextFetchAt: String? = nil, why: String, history: [PastFetch]
    ) {
        self.minimumBackgroundFetchInterval = minimumBackgroundFetchInterval
        self.backgroundRefreshStatus = backgroundRefreshStatus
        self.nextFetchAt = nextFetchAt
        self.why = why
        self.history = history
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        minimumBackgroundFetchInterval = reader.fetchInterval("minimumBackgroundFetchInterval")
        backgroundRefreshStatus = reader.word("backgroundRefreshStatus")
        nextFetchAt = reader.optionalString("nextFetchAt")
        why = reader.string("why")
        history = reader.objects("history")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("minimumBackgroundFetchInterval", minimumBackgroundFetchInterval)
            writer.member("backgroundRefreshStatus", backgroundRefreshStatus)
            writer.member("nextFetchAt", nextFetchAt)
            writer.member("why", why)
            writer.member("history", history)
        }
    }
}

/// A fetch that was.
public struct PastFetch: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Its launch.
    public var launchId: String
    /// When it was sent.
    public var at: String
    /// How many seconds the answer took.
    public var duration: Double?
    /// What came of it; `nil` while it is open.
    public var result: LaunchCompletion.FetchResult?

    /// Makes one.
    public init(launchId: String, at: String, duration: Double? = nil, result: LaunchCompletion.FetchResult? = nil) {
        self.launchId = launchId
        self.at = at
        self.duration = duration
        self.result = result
    }

    /// Reads the object.
    public init(reading reader: inout ObjectReader) {
        launchId = reader.string("launchId")
        at = reader.string("at")
        duration = reader.optionalNumber("duration")
        result = reader.optionalWord("result")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("launchId", launchId)
            writer.member("at", at)
            writer.member("duration", duration)
            writer.member("result", result)
        }
    }
}
