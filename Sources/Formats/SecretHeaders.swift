/// The header fields with secrets: sealed at rest, hidden in responses, dropped when a redirect leaves the origin.
public enum SecretHeaders {
    /// The replacement of a secret value.
    public static let placeholder = "<redacted>"

    /// Whether a field has a secret, by its name or by the app's declaration.
    public static func isSecret(_ name: String, besides sensitive: [String]) -> Bool {
        let name = name.lowercased()
        return name == "authorization" || name == "cookie" || name == "x-api-key" || name.hasPrefix("proxy-")
            || name.hasPrefix("x-auth-") || sensitive.contains { $0.lowercased() == name }
    }

    /// The fields with their secret values hidden.
    public static func redacted(_ headers: StringMap, besides sensitive: [String]) -> StringMap {
        StringMap(headers.map { ($0.name, isSecret($0.name, besides: sensitive) ? placeholder : $0.value) })
    }
}
