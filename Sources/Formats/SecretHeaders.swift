/// Which header fields carry secrets: sealed at rest, hidden in answers, dropped when a redirect leaves the origin.
public enum SecretHeaders {
    /// What stands for a secret value.
    public static let placeholder = "<redacted>"

    /// Whether a field carries a secret by its name, or because the app said so.
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
