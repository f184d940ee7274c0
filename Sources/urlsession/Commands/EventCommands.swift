import FoundationEssentials
import Glibc
import URLSessionClient
import Wire

enum EventCommands {
    // MARK: Events

    static func events(_ call: Invocation) async throws {
        let session = call.words.text("SESSION") ?? ""
        let after = call.words.number("after")
        let (isLive, isFollowed) = (call.words.flag("live"), call.words.flag("follow"))
        // A refusal is reported at once; a later outage is waited for.
        if isLive || isFollowed { _ = try await call.client.session(session) }
        if isLive {
            for try await event in call.client.stream(of: session, after: after) { try show(event, call) }
        } else if isFollowed {
            try await follow(session, after: after, call)
        } else {
            try await list(session, after: after, call)
        }
    }

    private static func list(_ session: String, after: Int64?, _ call: Invocation) async throws {
        var (last, isAtEnd) = (after, false)
        while !isAtEnd {
            let page = try await call.client.eventPage(of: session, after: last, limit: 1000)
            for event in page.items { try show(event, call) }
            last = page.items.last?.seq ?? page.lastSeq
            isAtEnd = last ?? 0 >= page.lastSeq
        }
    }

    private static func follow(_ session: String, after: Int64?, _ call: Invocation) async throws {
        for try await event in call.client.stream(of: session, after: after) {
            guard let seq = event.seq else { continue }
            try show(event, call)
            try await Patience.insist { try await call.client.acknowledge(through: seq, in: session) }
        }
    }

    static func show(_ event: Event, _ call: Invocation) throws {
        try call.output.show(event) { event in
            let task = event.taskIdentifier.map { String($0) } ?? "-"
            let columns = [event.seq.map { String($0) } ?? "-", event.type.rawValue, task]
            guard Terminal.isTerminal(STDOUT_FILENO) else { return [columns.joined(separator: "\t")] }
            let subject = event.taskIdentifier.map { "task \($0) " } ?? ""
            return ["\(columns[0])  \(Words.time(event.occurredAt))  \(subject)\(Words.event(event))"]
        }
    }

    static func acknowledge(_ call: Invocation) async throws {
        try await call.client.acknowledge(through: call.words.number("SEQ") ?? 0, in: call.words.text("SESSION") ?? "")
    }

    // MARK: Questions

    static func questions(_ call: Invocation) async throws {
        let states = call.words.list("state").map { QuestionState(rawValue: $0) }
        try await call.output.list(
            ["question", "type", "state", "task", "subject"],
            {
                try await call.client.questions(in: call.words.text("session"), states: states, cursor: $0, limit: 1000)
            }, row)
    }

    private static func row(_ question: Question) -> [String] {
        let subject = question.protectionSpace.map { "\($0.host):\($0.port)" } ?? question.request?.url ?? "-"
        return [
            question.questionId, question.type.rawValue, question.state.rawValue,
            "\(question.sessionIdentifier)/\(question.taskIdentifier)", subject,
        ]
    }

    static func answer(_ call: Invocation) async throws {
        let words = call.words
        let disposition = Disposition(rawValue: words.text("DISPOSITION") ?? "")
        var answer = Answer(disposition)
        switch disposition {
        case .useCredential:
            var credential = Credential(try secret(words))
            if let persistence = words.text("persistence") { credential.persistence = .init(rawValue: persistence) }
            answer.credential = credential
        case .useNewRequest:
            guard let url = words.text("request") else {
                throw CallWords.Fault(text: "useNewRequest needs --request URL", command: "answer")
            }
            answer.request = TransferRequest(url: url)
        default: break
        }
        try call.output.row(try await call.client.answer(answer, to: words.text("QUESTION") ?? ""), row)
    }

    private static func secret(_ words: CallWords) throws -> Credential.Secret {
        if let key = words.text("trust") { return .trustPublicKey(key) }
        let user = words.text("user")
        guard let secret = Terminal.secret(user.map { "Password of \($0)" } ?? "Token"), !secret.isEmpty else {
            throw Failure("there is no secret on standard input", status: 2)
        }
        return user.map { .password(user: $0, password: secret) } ?? .token(secret)
    }

    // MARK: Credentials

    static func credentials(_ call: Invocation) async throws {
        try await call.output.list(
            ["credential", "user", "method", "server"],
            { try await call.client.credentials(cursor: $0, limit: 1000) },
            {
                [
                    $0.credentialIdentifier, $0.user ?? "-", $0.protectionSpace.authenticationMethod.rawValue,
                    Words.space($0.protectionSpace),
                ]
            })
    }

    static func addCredential(_ call: Invocation) async throws {
        let words = call.words
        guard let url = URL(string: words.text("URL") ?? ""), let host = url.host(), let scheme = url.scheme,
            ["http", "https"].contains(scheme)
        else {
            throw CallWords.Fault(
                text: "URL must be that of a server, such as https://example.com", command: "credentials add")
        }
        let method: AuthenticationMethod = words.text("user") == nil ? .bearer : words.flag("digest") ? .digest : .basic
        let space = ProtectionSpace(
            host: host, port: Int64(url.port ?? (scheme == "https" ? 443 : 80)), protocol: scheme,
            realm: words.text("realm"), authenticationMethod: method)
        let stored = try await call.client.storeCredential(Credential(try secret(words)), for: space)
        try call.output.show(stored) { ["\($0.credentialIdentifier)\t\(Words.space($0.protectionSpace))"] }
    }

    static func removeCredential(_ call: Invocation) async throws {
        try await call.client.deleteCredential(call.words.text("CREDENTIAL") ?? "")
    }
}
