import Wire

struct SessionOptions: Sendable, Equatable {
    private static let names = ["tries", "max-time", "connections", "limit-rate"]

    private let tries: Int64?
    private let seconds: Double?
    private let connections: Int64?
    private let rate: Int64?
    /// The words that distinguish the session from that of the same call without these options.
    let key: [String]

    /// - Throws: ``CallWords/Fault`` with `--session`, because the configuration of such a session is fixed.
    init(_ words: CallWords) throws(CallWords.Fault) {
        if words.text("session") != nil, let name = Self.names.first(where: { words.text($0) != nil }) {
            throw CallWords.Fault(
                text: "--\(name) is for the command's own session; a session of --session has the configuration of "
                    + "urlsession open",
                command: words.command.name)
        }
        tries = words.number("tries")
        seconds = words.seconds("max-time")
        connections = words.number("connections")
        rate = words.bytes("limit-rate")
        if let seconds, !(0.001...315_360_000).contains(seconds) {
            throw CallWords.Fault(
                text: "--max-time must be more than 0 and at most ten years: \(words.text("max-time") ?? "")",
                command: words.command.name)
        }
        key = Self.names.compactMap { name in words.text(name).map { "\(name)=\($0)" } }
    }

    /// The configuration of the session: without launches and questions, since no app handles them.
    var configuration: SessionConfiguration {
        SessionConfiguration {
            $0.sessionSendsLaunchEvents = false
            $0.authenticationChallenges = .performDefaultHandling
            if let tries { $0.retryPolicy = .custom(RetryPolicy.Settings { $0.maximumAttempts = tries }) }
            if let seconds { $0.timeoutIntervalForResource = seconds }
            if let connections { $0.httpMaximumConnectionsPerHost = connections }
            $0.bandwidthLimit = rate
        }
    }
}
