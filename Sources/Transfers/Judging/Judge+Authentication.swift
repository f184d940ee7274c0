import Core
import TransferEngine

extension Judge {
    /// Turns a 401, or a 407 of the session's proxy, with a supported scheme into a question, if the app can answer.
    ///
    /// - Returns: Nil if the response stands as the task's response.
    mutating func judgeChallenge(_ head: ResponseHead) -> Judgement? {
        guard let place = challenger(head) else { return nil }
        let fields = head.fields.kept.fields.values(place.isProxy ? "Proxy-Authenticate" : "WWW-Authenticate")
        let offered = Challenge.answerable(fields, withBody: transfer.request.sendsBody)
        if let judgement = judgeStored(offered, at: place) { return judgement }
        guard mayAsk else { return nil }
        let rejected = progress.authentication.count {
            $0.disposition == .rejectProtectionSpace
                && ($0.space.map { $0.isHTTP && $0.isSamePlace(as: place) } ?? true)
        }
        guard rejected < offered.count, let method = offered[rejected].method else { return nil }
        var space = place
        space.realm = offered[rejected].realm
        space.authenticationMethod = method
        let proposed = place.isProxy ? transfer.attempt.access.proxyCredential : transfer.attempt.access.credential
        return .ask(
            Question(
                kind: .challenge, protectionSpace: space,
                previousFailureCount: refusals(of: space) + storedRefusals(of: offered[rejected], at: place),
                proposedUser: proposed?.user, failureResponse: TaskResponse(head, url: transfer.request.url)))
    }

    /// Whether the app can answer a question, and has not chosen the default handling for its last answer.
    private var mayAsk: Bool {
        transfer.configuration.authenticationChallenges == .ask && canAsk
            && progress.authentication.last?.disposition != .performDefaultHandling
    }

    /// The server that the current request goes to, without a realm.
    private func targetSpace(_ method: ProtectionSpace.Method) -> ProtectionSpace {
        ProtectionSpace(
            host: transfer.request.url.host, port: Int(transfer.request.url.port), scheme: transfer.request.url.scheme,
            realm: nil,
            authenticationMethod: method)
    }

    /// The challenger, without realm and scheme. A 407 that is not from the session's proxy is an ordinary status: with
    /// it, a server could request the proxy's password.
    private func challenger(_ head: ResponseHead) -> ProtectionSpace? {
        if head.status == 401 { return targetSpace(.basic) }
        guard head.status == 407, let proxy = transfer.configuration.proxy, let scheme = proxy.challengeScheme,
            result.isOfProxy || !transfer.requestURL.isSecure
        else { return nil }
        return ProtectionSpace(
            host: proxy.host, port: proxy.port, scheme: scheme, realm: nil, authenticationMethod: .basic, isProxy: true)
    }

    /// The number of the app's credentials that the protection space has rejected.
    private func refusals(of space: ProtectionSpace) -> Int {
        progress.authentication.count {
            $0.disposition == .useCredential && ($0.space?.asksSame(as: space) ?? true)
        }
    }

    /// The number of stored credentials that were sent, and that the protection space has rejected.
    private func storedRefusals(of challenge: Challenge, at place: ProtectionSpace) -> Int {
        let stored = place.isProxy ? transfer.attempt.access.storedForProxy : transfer.attempt.access.stored
        return stored.count {
            $0.space.isHTTP && progress.credentialsTried.contains($0.credentialId) && $0.space.answers(challenge)
        }
    }

    /// Answers a challenge with a stored credential of its realm that was not sent yet, if there is one.
    private mutating func judgeStored(_ offered: [Challenge], at place: ProtectionSpace) -> Judgement? {
        let wasAnswered = progress.authentication.contains { step in
            step.disposition == .useCredential && (step.space.map { $0.isHTTP && $0.isSamePlace(as: place) } ?? true)
        }
        guard !wasAnswered else { return nil }
        let sent = place.isProxy ? transfer.attempt.access.proxyCredential : transfer.attempt.access.credential
        let stored = place.isProxy ? transfer.attempt.access.storedForProxy : transfer.attempt.access.stored
        let untried = stored.filter { known in
            known.space.isHTTP && !progress.credentialsTried.contains(known.credentialId)
                && offered.contains { known.space.answers($0) }
        }
        // The one that was sent without a challenge is refused as well.
        let refused = untried.filter { known in sent.map { $0.sendsSame(as: known.credential) } ?? false }
        progress.credentialsTried += refused.map(\.credentialId)
        guard let next = untried.first(where: { !progress.credentialsTried.contains($0.credentialId) }) else {
            return nil
        }
        progress.credentialsTried.append(next.credentialId)
        return .send(.authenticate)
    }

    /// Turns a refusal by a server that requested a certificate, and received none, into a question. Many servers
    /// complete the handshake and refuse the request: nginx with 400, others with 403.
    func judgeMissingCertificate(_ head: ResponseHead) -> Judgement? {
        guard result.mayLackCertificate, transfer.attempt.access.credential?.certificate == nil else { return nil }
        var question = connectionQuestion(.clientCertificate)
        question?.failureResponse = TaskResponse(head, url: transfer.request.url)
        return question.map { .ask($0) }
    }

    /// The question for an untrusted server, or for one that requires a certificate or rejected the client's.
    func trustQuestion(_ fault: TransferFault, _ error: TaskError) -> Question? {
        switch fault {
        case .clientCertificateRequired, .clientCertificateInvalid: return connectionQuestion(.clientCertificate)
        case .pinMismatch: return nil
        case _ where fault.isTrustFailure && result.serverPublicKey != nil: return connectionQuestion(.serverTrust)
        default: return nil
        }
    }

    /// A question about the connection to the server, if the app can answer it and has not rejected the space. An
    /// upload resource at another origin is shown no certificate of the app's, and trusted no further.
    private func connectionQuestion(_ method: ProtectionSpace.Method) -> Question? {
        guard mayAsk, !transfer.goesToOtherOrigin else { return nil }
        var space = targetSpace(method)
        if method == .serverTrust { space.serverPublicKey = result.serverPublicKey }
        // The connection offers no other authentication method.
        let isRejected = progress.authentication.contains {
            $0.disposition == .rejectProtectionSpace && ($0.space?.asksSame(as: space) ?? false)
        }
        guard !isRejected else { return nil }
        return Question(kind: .challenge, protectionSpace: space, previousFailureCount: refusals(of: space))
    }
}

extension ExchangeResult {
    /// Whether the result is of a kind that may become a question.
    var mayAsk: Bool {
        // A page that is too long for a content may be a challenge's.
        if case .failed(let fault) = outcome, fault != .tooLarge {
            return fault.isTrustFailure
                || [.clientCertificateRequired, .clientCertificateInvalid, .proxyAuthenticationRequired].contains(fault)
        }
        return head?.status == 401 || head?.status == 407 || mayLackCertificate
    }

    /// Whether the server requested a certificate, and responds with a status usual for a missing one.
    fileprivate var mayLackCertificate: Bool {
        guard asksForCertificate, let status = head?.status else { return false }
        return [400, 401, 403, 495, 496].contains(status)
    }
}

extension ProtectionSpace {
    /// Whether the stored credential fits the challenge. Without a realm it fits every realm.
    fileprivate func answers(_ challenge: Challenge) -> Bool {
        authenticationMethod == challenge.method && (realm == nil || realm == challenge.realm)
    }
}
