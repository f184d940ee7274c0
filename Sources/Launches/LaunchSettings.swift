import Base
package import Core

/// What the operator decides about webhooks.
package struct LaunchSettings: Sendable {
    /// The base of the URLs in webhooks (`--public-url`).
    package var publicURL: String
    package var version: String
    package var egress: EgressPolicy
    /// Plain http to what the operator's ranges allow, and to nothing else (`--allow-http-webhooks`).
    package var allowsHTTP: Bool
    /// For an attempt as a whole, its answer included (`--webhook-timeout`).
    package var timeout: Duration
    package var fetchTimeout = Duration.seconds(30)
    /// Whether this node sends launches at all, and was not asked to take nothing more.
    package var maySend: @Sendable () -> Bool = { true }
    /// How busy the machine is, where that is known.
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
