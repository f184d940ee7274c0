import Foundation
import Synchronization
import Wire

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Challenges and credentials in Apple's shape. The subclasses contain the service's values, so that one method serves
// delegates of either shape without loss.

/// A question of the service as Apple's challenge.
final class ServiceChallenge: URLAuthenticationChallenge, @unchecked Sendable {
    typealias Answer = @Sendable (BackgroundSession.AuthChallengeDisposition, URLCredential?) -> Void

    let challenge: AuthenticationChallenge

    /// - Parameter answer: Called by the methods of the challenge's sender.
    init(_ challenge: AuthenticationChallenge, answer: @escaping Answer) {
        self.challenge = challenge
        super.init(
            protectionSpace: .of(challenge.protectionSpace),
            proposedCredential: challenge.proposedCredential.map {
                URLCredential(user: $0.user ?? "", password: "", persistence: .none)
            },
            previousFailureCount: Int(challenge.previousFailureCount),
            failureResponse: challenge.failureResponse.flatMap { HTTPURLResponse($0) }, error: nil,
            sender: Sender(answer: answer))
    }

    required init?(coder: NSCoder) { nil }

    /// The sender, Apple's older way to answer challenges of `URLConnection`, which is still declared.
    private final class Sender: NSObject, URLAuthenticationChallengeSender, Sendable {
        let answer: Answer

        init(answer: @escaping Answer) { self.answer = answer }

        func use(_ credential: URLCredential, for challenge: URLAuthenticationChallenge) {
            answer(.useCredential, credential)
        }

        func continueWithoutCredential(for challenge: URLAuthenticationChallenge) {
            answer(.performDefaultHandling, nil)
        }

        func cancel(_ challenge: URLAuthenticationChallenge) { answer(.cancelAuthenticationChallenge, nil) }

        func performDefaultHandling(for challenge: URLAuthenticationChallenge) { answer(.performDefaultHandling, nil) }

        func rejectProtectionSpaceAndContinue(with challenge: URLAuthenticationChallenge) {
            answer(.rejectProtectionSpace, nil)
        }
    }
}

/// A credential of the service in Apple's shape.
final class ServiceCredential: URLCredential, @unchecked Sendable {
    let credential: Credential

    init(_ credential: Credential) {
        self.credential = credential
        var (user, password) = ("", "")
        if case .password(let name, let secret) = credential.secret { (user, password) = (name, secret) }
        super.init(user: user, password: password, persistence: .none)
    }

    required init?(coder: NSCoder) { nil }
}

extension Credential {
    /// The credential for the service; `nil` without a user and a password, because Apple's type reveals nothing else.
    init?(_ credential: URLCredential) {
        if let own = credential as? ServiceCredential {
            self = own.credential
            return
        }
        guard let user = credential.user, let password = credential.password else { return nil }
        let persistence: Persistence =
            switch credential.persistence {
            case .none: .none
            case .forSession: .forSession
            // `synchronizable` is for the user's other devices. The service already serves all of them.
            default: .permanent
            }
        self.init(user: user, password: password, persistence: persistence)
    }
}

extension URLProtectionSpace {
    /// The protection space in Apple's shape.
    static func of(_ space: ProtectionSpace) -> URLProtectionSpace {
        let method = name(of: space.authenticationMethod)
        guard !space.isProxy else {
            let type = space.protocol == "https" ? NSURLProtectionSpaceHTTPSProxy : NSURLProtectionSpaceHTTPProxy
            return URLProtectionSpace(
                proxyHost: space.host, port: Int(space.port), type: type, realm: space.realm,
                authenticationMethod: method)
        }
        return URLProtectionSpace(
            host: space.host, port: Int(space.port), protocol: space.protocol, realm: space.realm,
            authenticationMethod: method)
    }

    /// Apple's name of the method. Bearer has none, and keeps the service's word.
    private static func name(of method: AuthenticationMethod) -> String {
        switch method {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        // Foundation on Linux marks both constants as unavailable. The literals are their values.
        case .serverTrust: "NSURLAuthenticationMethodServerTrust"
        case .clientCertificate: "NSURLAuthenticationMethodClientCertificate"
        default: method.rawValue
        }
    }
}

extension BackgroundSession {
    /// Sends the decision of a delegate of Apple's shape.
    ///
    /// A credential that cannot answer the challenge becomes default handling. Otherwise the service would refuse it,
    /// and the task would wait for another answer.
    func answer(
        _ disposition: AuthChallengeDisposition, _ credential: URLCredential?, to challenge: AuthenticationChallenge,
        with completionHandler: @Sendable (AuthChallengeDisposition, Credential?) -> Void
    ) {
        guard disposition == .useCredential, let credential else { return completionHandler(disposition, nil) }
        let method = challenge.protectionSpace.authenticationMethod
        guard let known = Credential(credential), known.fits(method) else {
            warn(
                .unusableCredential,
                """
                a URLCredential cannot answer a challenge of the method \(method.rawValue); default handling instead. \
                URLCredential has a user and a password for Basic and Digest. Implement \
                urlSession(_:task:didReceive:completionHandler:) with AuthenticationChallenge and Credential for others.
                """)
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, known)
    }

    enum Warning: Hashable, Sendable {
        case unusableCredential
        case taskOfEndedSession
    }

    /// Writes a warning to standard error, once for each session object.
    func warn(_ warning: Warning, _ text: String) {
        guard facts.withLock({ $0.warnings.insert(warning).inserted }) else { return }
        Self.warn(identifier, text)
    }

    static func warn(_ identifier: String, _ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("URLSessionClient: session \(identifier): \(text)\n".utf8))
    }
}
