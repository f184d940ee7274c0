/// The address of a source as manifests show it.
enum PublicAddress {
    /// Names of query parameters that carry secrets: those of presigned URLs of S3, Google, Azure and CloudFront, and
    /// usual names of tokens.
    private static let secrets: Set<String> = [
        "x-amz-signature", "x-amz-credential", "x-amz-security-token", "x-goog-signature", "x-goog-credential",
        "signature", "sig", "awsaccesskeyid", "googleaccessid", "policy", "key-pair-id", "token", "access_token",
        "auth", "api_key", "apikey", "key", "password", "secret",
    ]

    /// A URL without the query parameters that carry secrets.
    static func withoutSecrets(_ url: String) -> String {
        guard let mark = url.utf8.firstIndex(of: UInt8(ascii: "?")) else { return url }
        let parts = url[url.utf8.index(after: mark)...].utf8.split(
            separator: UInt8(ascii: "&"), omittingEmptySubsequences: false
        ).map { String(Substring($0)) }
        let shown = parts.filter { part in
            let name = part.utf8.prefix { $0 != UInt8(ascii: "=") }
            return !secrets.contains(String(decoding: Array(name), as: UTF8.self).asciiLowercased)
        }
        guard shown.count < parts.count else { return url }
        return shown.isEmpty ? String(url[..<mark]) : url[..<mark] + "?" + shown.joined(separator: "&")
    }
}
