/// One cookie as it is kept: a line of the Netscape cookie file, the form that libcurl reads and writes.
///
/// What libcurl took stands here; its rules about domains, paths, prefixes and public suffixes are not repeated.
package struct Cookie: Hashable, Sendable {
    /// Lower case, without a dot in front.
    package let domain: String
    /// Sent to hosts below the domain too.
    package let includesSubdomains: Bool
    package let path: String
    package let name: String
    /// Seconds since 1970; 0 where it ends with nothing but a reset.
    package let expiresAt: Int64
    /// The whole line.
    package let line: String

    /// What makes another cookie the successor of this one (RFC 6265 section 5.3, step 11).
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

    /// Nil for what is no such line: domain, subdomains, path, secure, expiry, name, value, with tabs between.
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

    /// Whether it may concern a host; whether it is sent is libcurl's decision.
    func concerns(_ host: String) -> Bool {
        host.equalsIgnoringASCIICase(domain) || includesSubdomains && host.asciiLowercased.hasSuffix("." + domain)
    }
}

/// The cookies of one session.
///
/// Several exchanges work with copies at once, so what comes back is compared with what was given: only the differences
/// change the jar, and the last one wins.
package struct CookieJar: Hashable, Sendable {
    /// More than that, and the oldest go.
    package static let maximumCount = 300
    /// Longer lines, in bytes, are not kept.
    package static let longestCookie = 4096

    /// The oldest first.
    private(set) package var cookies: [Cookie] = []

    package init() {}

    package init(lines: [String]) { cookies = lines.compactMap(Cookie.init) }

    package var lines: [String] { cookies.map(\.line) }

    /// What an exchange with a host is given.
    package func lines(for host: String, at now: Timestamp) -> [String] {
        cookies.filter { $0.concerns(host) && !$0.hasExpired(at: now) }.map(\.line)
    }

    /// Takes over what an exchange changed.
    ///
    /// - Parameters:
    ///   - given: The lines it began with.
    ///   - returned: The lines it ended with.
    ///   - accepts: Whether it may bring new cookies and values. What it deleted is deleted all the same.
    /// - Returns: Whether the jar is another now.
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
