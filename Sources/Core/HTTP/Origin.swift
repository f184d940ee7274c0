/// Scheme, host and port: what a connection is shared by and a secret belongs to (RFC 6454).
package struct Origin: Hashable, Sendable, Codable {
    /// Lower case.
    package var scheme: String
    /// Lower case, an IPv6 literal without its brackets.
    package var host: String
    package var port: Int

    /// - Parameter port: Nil takes the scheme's own, 80 or 443.
    package init(scheme: String, host: String, port: Int? = nil) {
        self.scheme = scheme.asciiLowercased
        let lowered = host.asciiLowercased
        self.host = lowered.hasPrefix("[") && lowered.hasSuffix("]") ? String(lowered.dropFirst().dropLast()) : lowered
        self.port = port ?? (self.scheme == "https" ? 443 : self.scheme == "http" ? 80 : 0)
    }

    package var isHTTP: Bool { scheme == "http" || scheme == "https" }
}
