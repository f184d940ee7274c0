package import Core
package import Wire

extension Wire.Question {
    package init(_ record: QuestionRecord) {
        let question = record.question
        let isChallenge = question.kind == .challenge
        self.init()
        questionId = record.questionId
        type = isChallenge ? .taskDidReceiveChallenge : .taskWillBeginDelayedRequest
        state = Wire.QuestionState(record.state.phase)
        sessionIdentifier = record.sessionIdentifier
        taskIdentifier = record.taskIdentifier
        taskCount = record.taskCount
        protectionSpace = question.protectionSpace.map(Wire.ProtectionSpace.init)
        previousFailureCount = isChallenge ? Int64(question.previousFailureCount) : nil
        proposedCredential = question.proposedUser.map { user in ProposedCredential { $0.user = user } }
        failureResponse = question.failureResponse.map(Wire.TaskResponse.init)
        request = question.request.map { Wire.TransferRequest($0) }
        disposition = record.state.disposition.map { Disposition($0) }
        deadline = record.deadline.rfc3339
        createdAt = record.createdAt.rfc3339
        answeredAt = record.state.answeredAt?.rfc3339
    }
}

extension Core.Answer {
    /// An app's answer.
    ///
    /// - Parameter record: The question, which decides which answers are valid.
    /// - Throws: A fault for a disposition of the other kind of question, and for a credential that does not fit.
    package init(_ wire: Wire.Answer, to record: QuestionRecord) throws(JSONError) {
        guard let disposition = Disposition(wire.disposition) else {
            throw .invalid("There is no such disposition.", at: "/disposition")
        }
        guard disposition.fits(record.question.kind) else {
            throw .invalid("This disposition does not answer a question of this kind.", at: "/disposition")
        }
        if let credential = wire.credential, let space = record.question.protectionSpace {
            guard credential.fits(Wire.AuthenticationMethod(space.authenticationMethod)) else {
                throw .invalid("\(space.authenticationMethod.rawValue) needs another credential.", at: "/credential")
            }
        }
        let method = record.question.request?.method
        self.init(
            disposition: disposition, credential: wire.credential.map(Core.Credential.init),
            request: wire.request.map { request in
                var core = Core.TransferRequest(request, kind: .download)
                // Without a method the new request keeps the method of the request that was about to start.
                if request.method == nil, let method { core.method = method }
                return core
            })
    }
}

extension Core.Answer.Disposition {
    func fits(_ kind: Core.Question.Kind) -> Bool {
        switch self {
        case .useCredential, .performDefaultHandling, .cancelAuthenticationChallenge, .rejectProtectionSpace:
            kind == .challenge
        case .continueLoading, .useNewRequest, .cancel: kind == .delayedRequest
        }
    }
}

extension Core.Credential {
    package init(_ wire: Wire.Credential) {
        let persistence = Persistence(wire.persistence) ?? .none
        switch wire.secret {
        case .password(let user, let password):
            self.init(user: user, password: password, persistence: persistence)
        case .token(let token): self.init(token: token, persistence: persistence)
        case .certificate(let certificate, let key):
            self.init(certificate: certificate, key: key, persistence: persistence)
        case .trustPublicKey(let key): self.init(trustPublicKey: key, persistence: persistence)
        }
    }
}

extension Core.ProtectionSpace {
    /// Hosts are compared as the URL parser writes them.
    package init?(_ wire: Wire.ProtectionSpace) {
        guard let method = Method(wire.authenticationMethod) else { return nil }
        self.init(
            host: wire.host.canonicalHost, port: Int(clamping: wire.port), scheme: wire.protocol, realm: wire.realm,
            authenticationMethod: method, isProxy: wire.isProxy, serverPublicKey: wire.serverPublicKey)
    }
}

extension Wire.ProtectionSpace {
    package init(_ core: Core.ProtectionSpace) {
        self.init(
            host: core.host, port: Int64(core.port), protocol: core.scheme, realm: core.realm,
            authenticationMethod: AuthenticationMethod(core.authenticationMethod),
            isProxy: core.isProxy, serverPublicKey: core.serverPublicKey)
    }
}

extension StoredCredential {
    package init(_ record: CredentialRecord) {
        self.init()
        credentialIdentifier = record.credentialId
        protectionSpace = Wire.ProtectionSpace(record.space)
        user = record.user
        createdAt = record.createdAt.rfc3339
    }
}
