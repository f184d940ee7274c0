/// An http or https URL as libcurl parses it, which determines the connection.
///
/// Text is parsed at the entry (`ParsedURL(_:)` of the engine), and stays parsed until it is stored or output.
package struct ParsedURL: Hashable, Sendable {
    /// In canonical form, without fragment, the host in ASCII.
    package let text: String
    package let isSecure: Bool
    /// Lower case; an IPv6 literal without brackets.
    package let host: String
    /// The host as an address, if it is one.
    package let address: IPAddress?
    package let port: UInt16

    package init(text: String, isSecure: Bool, host: String, port: UInt16) {
        self.text = text
        self.isSecure = isSecure
        self.host = host
        address = IPAddress(host)
        self.port = port
    }

    package var scheme: String { isSecure ? "https" : "http" }

    /// `host:port`, an IPv6 literal in brackets.
    package var hostAndPort: String { "\(host.bracketed):\(port)" }

    /// `scheme://host:port`, always with the port: the scope of connections and secrets (RFC 6454).
    package var origin: String { "\(scheme)://\(hostAndPort)" }
}

extension String {
    /// A host as an authority has it: an IPv6 address in brackets (RFC 3986 section 3.2.2).
    package var bracketed: String { utf8.contains(UInt8(ascii: ":")) ? "[\(self)]" : self }
}
