import Wire

/// The service's public URLs. Their base is configured, never derived from a request.
package struct PublicURLs: Sendable {
    private let base: String

    /// - Parameter base: Such as `https://transfers.example.com`; a trailing slash is ignored.
    package init(base: String) {
        var base = base
        while base.utf8.last == UInt8(ascii: "/") { base.removeLast() }
        self.base = base
    }

    package func session(_ identifier: String) -> String { "\(base)/v1/sessions/\(Self.segment(identifier))" }

    package func events(of session: String) -> String { self.session(session) + "/events" }

    package func content(of task: Int64, in session: String) -> String {
        self.session(session) + "/tasks/\(task)/content"
    }

    package func manifest(of version: String, in set: String) -> String {
        "\(base)/v1/sets/\(Self.segment(set))/versions/\(Self.segment(version))/manifest"
    }

    package func completion(of launchId: String) -> String { "\(base)/v1/launches/\(launchId)/complete" }

    /// A path segment: unreserved characters, `:`, `@` and `+` are unchanged, others percent-encoded (RFC 3986 section
    /// 3.3). A session's identifier is never changed.
    package static func segment(_ text: String) -> String {
        PercentCoding.encode(text) { PercentCoding.isUnreserved($0) || ":@+".utf8.contains($0) }
    }
}
