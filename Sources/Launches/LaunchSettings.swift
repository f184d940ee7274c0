import Base
package import Core

/// The operator's settings of webhooks.
package struct LaunchSettings: Sendable {
    /// The base of the URLs in webhooks (`--public-url`).
    package var publicURL: String
    package var version: String
    package var egress: EgressPolicy
    /// Allows plain http to the operator's allowed ranges only (`--allow-http-webhooks`).
    package var allowsHTTP: Bool
    /// The time limit of a whole attempt, including its response (`--webhook-timeout`).
    package var timeout: Duration
    package var fetchTimeout = Duration.seconds(30)
    /// Whether this node sends launches and starts fetches, and is not draining.
    package var maySend: @Sendable () -> Bool = { true }
    /// The load of the machine, if it is known.
    package var load: @Sendable () -> Double? = { SystemLoad().current() }

    package init(
        publicURL: String, version: String, egress: EgressPolicy, allowsHTTP: Bool, timeout: Duration = .seconds(15)
    ) {
        self.publicURL = publicURL
        self.version = version
        self.egress = egress
        self.allowsHTTP = allowsHTTP
        self.timeout = timeout
    }
}
