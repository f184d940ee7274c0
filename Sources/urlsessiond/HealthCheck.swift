import TransferEngine

/// `urlsessiond healthcheck [URL | HOST:PORT] [FLAGS]`: for containers without curl.
enum HealthCheck {
    /// Requests `/healthz`, by default at the address where the service's settings have it listen.
    static func run(_ arguments: [String], environment: [String: String]) -> Int32 {
        let place = arguments.first.flatMap { $0.hasPrefix("--") ? nil : $0 }
        var values = SettingValues(
            arguments: Array(arguments.dropFirst(place == nil ? 0 : 1)), environment: environment)
        let listen = Configuration.address("listen", &values) ?? Configuration.standardListen
        guard values.faults.isEmpty else {
            for line in values.faults { Command.complain("urlsessiond: \(line)") }
            return Command.Exit.usage
        }
        let base = place ?? authority(of: listen)
        let scheme = values.text("tls-certificate") == nil ? "http" : "https"
        let url = question(to: base.contains("://") ? base : "\(scheme)://\(base)")
        guard let status = Probe.status(of: url, within: .seconds(3)) else {
            Command.complain("urlsessiond: no service answers at \(url)")
            return Command.Exit.failed
        }
        return status == 200 ? Command.Exit.done : Command.Exit.failed
    }

    /// For a listener on all addresses, the loopback address is used.
    private static func authority(of listen: Configuration.Address) -> String {
        var address = listen
        if address.host == "0.0.0.0" { address.host = "127.0.0.1" }
        if address.host == "::" { address.host = "::1" }
        return address.text
    }

    private static func question(to text: String) -> String {
        let parts = text.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.prefix(3).joined(separator: "/") + "/healthz"
    }
}
