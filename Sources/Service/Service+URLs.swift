import TransferEngine

extension Service {
    /// What is wrong with a URL that a task should transfer, for a person; nil when it can be asked for.
    ///
    /// Says nothing about its address: that is judged when the task runs.
    package static func faultOfURL(_ text: String) -> String? {
        do throws(BadURL) {
            _ = try URLParts.parse(text)
            return nil
        } catch {
            return switch error {
            case .malformed: "This is no absolute URL."
            case .unsupportedScheme: "A URL must begin with http:// or https://."
            case .credentials: "A URL must not contain a user or password: use a header or a credential."
            case .forbiddenCharacter: "A URL has a character here that must be percent-encoded, or may not stand here."
            case .badHost: "The host is not valid."
            case .tooLong: "A URL has at most 8192 bytes."
            }
        }
    }
}
