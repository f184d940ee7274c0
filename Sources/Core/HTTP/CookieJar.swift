/// A stored cookie: a line of the Netscape cookie file, the format of libcurl.
///
/// libcurl applied its rules about domains, paths, prefixes and public suffixes. They are not repeated here.
package struct Cookie: Hashable, Sendable {
    /// Lower case, without a leading dot.
    package let domain: String
    /// Whether the cookie is also sent to subdomains.
    package let includesSubdomains: Bool
    package let path: String
    package let name: String
    /// Seconds since 1970; 0 if only a reset ends the cookie.
    package let expiresAt: Int64
    /// The whole line.
    package let line: String

    /// The key by which a new cookie replaces an old one (RFC 6265 section 5.3, step 11).
    struct Key: Hashable {
        let domain: [UInt8]
        let includesSubdomains: Bool
        let path: [UInt8]
        let name: [UInt8]
    }

    var key: Key {
        Key(
            domain: Array(domain.utf8), includesSubdomains: includesSubdomains, path: Array(path.utf8),
            name: Array(name.utf8))
    }

    /// `nil` for an invalid line. Valid: domain, subdomains, path, secure, expiry, name, value, separated by tabs.
    package init?(_ line: String) {
        let parts = line.utf8.split(separator: 0x09, omittingEmptySubsequences: false)
        guard parts.count == 7, let expiry = Int64(String(parts[4]) ?? ""), let domain = String(parts[0]),
            let path = String(parts[2]), let name = String(parts[5])
        else { return nil }
        let prefix = "#HttpOnly_"
        var host = domain.hasPrefix(prefix) ? String(domain.dropFirst(prefix.count)) : domain
        if host.hasPrefix(".") { host.removeFirst() }
        guard !host.isEmpty else { return nil }
        self.domain = host.asciiLowercased
        includesSubdomains = parts[1].elementsEqual("TRUE".utf8)
        self.path = path
        self.name = name
        expiresAt = expiry
        self.line = line
    }

    package func hasExpired(at now: Timestamp) -> Bool { expiresAt != 0 && expiresAt <= now.milliseconds / 1000 }

    /// Whether the cookie may apply to a host. libcurl decides whether to send it.
    func concerns(_ host: String) -> Bool {
        host.equalsIgnoringASCIICase(domain) || includesSubdomains && host.asciiLowercased.hasSuffix("." + domain)
    }
}

/// The cookies of one session.
///
/// Several exchanges use copies concurrently. A returned copy is therefore compared with the given one: only the
/// differences change the jar, and the last one wins.
package struct CookieJar: Hashable, Sendable {
    /// The maximum number of cookies. The oldest are deleted beyond it.
    package static let maximumCount = 300
    /// The maximum length of a line in bytes. Longer ones are not stored.
    package static let longestCookie = 4096

    /// The oldest first.
    private(set) package var cookies: [Cookie] = []

    package init() {}

    package init(lines: [String]) { cookies = lines.compactMap(Cookie.init) }

    package var lines: [String] { cookies.map(\.line) }

    /// The lines for an exchange with a host.
    package func lines(for host: String, at now: Timestamp) -> [String] {
        cookies.filter { $0.concerns(host) && !$0.hasExpired(at: now) }.map(\.line)
    }

    /// Merges the changes of an exchange.
    ///
    /// - Parameters:
    ///   - given: The lines at the start of the exchange.
    ///   - returned: The lines at its end.
    ///   - accepts: Whether new cookies and values are stored. Deletions always apply.
    /// - Returns: Whether the jar changed.
    package mutating func merge(given: [String], returned: [String], accepts: Bool, at now: Timestamp) -> Bool {
        let before = cookies
        let known = Dictionary(given.compactMap(Cookie.init).map { ($0.key, $0) }) { $1 }
        let found = returned.compactMap(Cookie.init)
        let left = Set(found.map(\.key))
        let deleted = Set(known.values.filter { !left.contains($0.key) })
        cookies.removeAll { deleted.contains($0) || $0.hasExpired(at: now) }
        if accepts {
            for cookie in found where known[cookie.key] != cookie && cookie.line.utf8.count <= Self.longestCookie {
                cookies.removeAll { $0.key == cookie.key }
                cookies.append(cookie)
            }
            cookies.removeFirst(max(0, cookies.count - Self.maximumCount))
        }
        return cookies != before
    }
}
