import Core
import TransferEngine

extension Judge {
    /// Turns a 401 or 407 with a scheme we speak into a question, where somebody can answer it.
    ///
    /// - Returns: Nil where the answer stands as the task's response.
    mutating func judgeChallenge(_ head: ResponseHead) -> Judgement? {
        guard head.status == 401 || head.status == 407, transfer.configuration.authenticationChallenges == .ask, canAsk
        else { return nil }
        let isProxy = head.status == 407
        let last = progress.authentication.last
        if last?.disposition == .performDefaultHandling { return nil }
        let challenges = Challenge.parse(head.fields.values(isProxy ? "Proxy-Authenticate" : "WWW-Authenticate"))
        let rejected = progress.authentication.count { $0.disposition == .rejectProtectionSpace }
        let offered = challenges.filter { $0.method != nil }
        guard rejected < offered.count, let method = offered[rejected].method else { return nil }
        let failures = progress.authentication.count { $0.disposition == .useCredential }
        return .ask(
            Question(
                kind: .challenge,
                protectionSpace: ProtectionSpace(
                    host: transfer.url.host, port: Int(transfer.url.port), scheme: transfer.url.scheme,
                    realm: offered[rejected].realm, authenticationMethod: method, isProxy: isProxy),
                previousFailureCount: failures, proposedUser: transfer.credential?.user,
                failureResponse: TaskResponse(head, url: transfer.url)),
            progress)
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
