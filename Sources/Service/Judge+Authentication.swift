import Core
import TransferEngine

extension Judge {
    /// Turns a 401 or 407 with a scheme we speak into a question, where somebody can answer it.
    ///
    /// - Returns: Nil where the answer stands as the task's response.
    mutating func judgeChallenge(_ head: ResponseHead) -> Judgement? {
        guard head.status == 401 || head.status == 407 else { return nil }
        let isProxy = head.status == 407
        let challenges = Challenge.parse(head.fields.values(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate"))
        let offered = challenges.filter { $0.method != nil }
        if !isProxy, let judgement = judgeStored(offered) { return judgement }
        guard transfer.configuration.authenticationChallenges == .ask, canAsk,
            progress.authentication.last?.disposition != .performDefaultHandling
        else { return nil }
        let rejected = progress.authentication.count { $0.disposition == .rejectProtectionSpace }
        guard rejected < offered.count, let method = offered[rejected].method else { return nil }
        let proxy = isProxy ? transfer.configuration.proxy : nil
        let failures = progress.authentication.count { $0.disposition == .useCredential }
        return .ask(
            Question(
                kind: .challenge,
                protectionSpace: ProtectionSpace(
                    host: proxy?.host ?? transfer.url.host, port: proxy?.port ?? Int(transfer.url.port),
                    scheme: proxy.map { $0.kind == .https ? "https" : "http" } ?? transfer.url.scheme,
                    realm: offered[rejected].realm, authenticationMethod: method, isProxy: isProxy),
                previousFailureCount: failures, proposedUser: transfer.credential?.user,
                failureResponse: TaskResponse(head, url: transfer.url)),
            progress)
    }

    /// Answers a challenge with a stored credential of its realm that was not sent yet, where there is one.
    private mutating func judgeStored(_ offered: [Challenge]) -> Judgement? {
        guard !progress.authentication.contains(where: { $0.disposition == .useCredential }) else { return nil }
        let tried = progress.credentialsTried ?? []
        for known in transfer.storedCredentials where known.space.isHTTP && !tried.contains(known.credentialId) {
            guard transfer.credential.map({ !$0.sendsSame(as: known.credential) }) ?? true,
                offered.contains(where: { known.space.answers($0) })
            else { continue }
            progress.credentialsTried = tried + [known.credentialId]
            return .authenticate(progress)
        }
        return nil
    }

    /// Turns an untrusted server, or one that wants a certificate, into a question.
    func trustQuestion(_ fault: TransferFault, _ error: TaskError) -> Question? {
        guard transfer.configuration.authenticationChallenges == .ask, canAsk,
            progress.authentication.last?.disposition != .performDefaultHandling
        else { return nil }
        let method: ProtectionSpace.Method
        switch fault {
        case .clientCertificateRequired: method = .clientCertificate
        case .pinMismatch: return nil
        case _ where fault.isTrustFailure && result.serverPublicKey != nil: method = .serverTrust
        default: return nil
        }
        return Question(
            kind: .challenge,
            protectionSpace: ProtectionSpace(
                host: transfer.url.host, port: Int(transfer.url.port), scheme: transfer.url.scheme, realm: nil,
                authenticationMethod: method, serverPublicKey: result.serverPublicKey),
            previousFailureCount: progress.authentication.count { $0.disposition == .useCredential })
    }
}

extension ExchangeResult {
    /// Whether it is of the kind that becomes a question.
    var mayAsk: Bool {
        if case .failed(let fault) = outcome {
            return fault.isTrustFailure || [.clientCertificateRequired, .proxyAuthenticationRequired].contains(fault)
        }
        return head?.status == 401 || head?.status == 407
    }
}

extension ProtectionSpace {
    /// Whether a credential kept for this is what a challenge asks for. Without a realm it is for all of them.
    fileprivate func answers(_ challenge: Challenge) -> Bool {
        authenticationMethod == challenge.method && (realm == nil || realm == challenge.realm)
    }
}
