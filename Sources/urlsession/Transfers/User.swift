import URLSessionClient
import Wire

/// The user of `--user`, with the password for the server (HTTP Basic, RFC 7617).
struct User: Sendable {
    let name: String
    private let password: String

    /// The user of a call, with a password from the terminal or from standard input; `nil` without `--user`.
    static func read(_ words: CallWords) throws -> User? {
        guard let name = words.text("user") else { return nil }
        guard !name.contains(":") else {
            throw CallWords.Fault(
                text: "--user is the name alone, without a colon: the password comes from standard input",
                command: words.command.name)
        }
        guard let password = Terminal.secret("Password of \(name)"), !password.isEmpty else {
            throw Failure("there is no password on standard input", status: 2)
        }
        return User(name: name, password: password)
    }

    /// A request with the password in a field that the service seals and never returns.
    func authorizing(_ request: TransferRequest) -> TransferRequest {
        var request = request
        request.headers["Authorization"] = "Basic " + Base64.encode(Array("\(name):\(password)".utf8))
        if !request.sensitiveHeaders.contains("Authorization") { request.sensitiveHeaders.append("Authorization") }
        return request
    }

    /// Refuses a call in which two options read standard input.
    static func checkStandardInput(_ words: CallWords) throws(CallWords.Fault) {
        var readers = words.texts("header").filter { $0 == "@-" }.map { "-H \($0)" }
        if words.text("input-file") == "-" { readers.append("-i -") }
        if words.text("user") != nil { readers.append("the password of --user") }
        guard readers.count > 1 else { return }
        throw CallWords.Fault(
            text: "standard input cannot be both \(readers[0]) and \(readers[1])", command: words.command.name)
    }
}
