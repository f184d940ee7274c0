package import Formats

/// The source of an authentication challenge, like `URLProtectionSpace`.
package struct ProtectionSpace: Shape {
    package enum Method: String, Word, CaseIterable {
        case basic = "HTTPBasic"
        case digest = "HTTPDigest"
        case bearer = "HTTPBearer"
        case clientCertificate = "ClientCertificate"
        case serverTrust = "ServerTrust"
    }

    package var host = ""
    package var port = 0
    package var scheme = ""
    package var realm: String?
    package var authenticationMethod = Method.basic
    package var isProxy = false
    /// `sha256/BASE64` of the server's key, for `ServerTrust`.
    package var serverPublicKey: String?

    package init() {}

    package init(
        host: String, port: Int, scheme: String, realm: String?, authenticationMethod: Method, isProxy: Bool = false,
        serverPublicKey: String? = nil
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.realm = realm
        self.authenticationMethod = authenticationMethod
        self.isProxy = isProxy
        self.serverPublicKey = serverPublicKey
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("host", &host)
        members.member("port", &port)
        members.member("scheme", &scheme)
        members.optional("realm", &realm)
        members.member("authenticationMethod", &authenticationMethod)
        members.member("isProxy", &isProxy)
        members.optional("serverPublicKey", &serverPublicKey)
    }
}

/// A secret that answers a challenge. Sealed at rest.
package struct Credential: Shape {
    package enum Persistence: String, Word, CaseIterable { case none, forSession, permanent }

    package var user: String?
    package var password: String?
    package var token: String?
    /// PEM.
    package var certificate: String?
    /// PEM.
    package var key: String?
    /// `sha256/BASE64` of a trusted server key.
    package var trustPublicKey: String?
    package var persistence = Persistence.none
    /// Whether the answered challenge was `HTTPDigest`.
    package var usesDigest = false

    package init() {}

    package init(
        user: String? = nil, password: String? = nil, token: String? = nil, certificate: String? = nil,
        key: String? = nil, trustPublicKey: String? = nil, persistence: Persistence = .none
    ) {
        self.user = user
        self.password = password
        self.token = token
        self.certificate = certificate
        self.key = key
        self.trustPublicKey = trustPublicKey
        self.persistence = persistence
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("user", &user)
        members.optional("password", &password)
        members.optional("token", &token)
        members.optional("certificate", &certificate)
        members.optional("key", &key)
        members.optional("trustPublicKey", &trustPublicKey)
        members.member("persistence", &persistence)
        members.member("usesDigest", &usesDigest)
    }
}

/// A question to an app about one of its tasks.
package struct Question: Shape {
    package enum Kind: String, Word { case challenge, delayedRequest }

    package var kind = Kind.challenge
    package var protectionSpace: ProtectionSpace?
    package var previousFailureCount = 0
    /// The user name of the proposed credential, never its secret.
    package var proposedUser: String?
    package var failureResponse: TaskResponse?
    /// The request of a delayed task that is about to start.
    package var request: TransferRequest?

    package init() {}

    package init(
        kind: Kind, protectionSpace: ProtectionSpace? = nil, previousFailureCount: Int = 0, proposedUser: String? = nil,
        failureResponse: TaskResponse? = nil, request: TransferRequest? = nil
    ) {
        self.kind = kind
        self.protectionSpace = protectionSpace
        self.previousFailureCount = previousFailureCount
        self.proposedUser = proposedUser
        self.failureResponse = failureResponse
        self.request = request
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("kind", &kind)
        members.optional("protectionSpace", &protectionSpace)
        members.member("previousFailureCount", &previousFailureCount)
        members.optional("proposedUser", &proposedUser)
        members.optional("failureResponse", &failureResponse)
        members.optional("request", &request)
    }
}

/// An app's answer.
package struct Answer: Shape {
    package enum Disposition: String, Word, CaseIterable {
        case useCredential, performDefaultHandling, cancelAuthenticationChallenge, rejectProtectionSpace
        case continueLoading, useNewRequest, cancel
    }

    package var disposition = Disposition.performDefaultHandling
    package var credential: Credential?
    package var request: TransferRequest?

    package init() {}

    package init(disposition: Disposition, credential: Credential? = nil, request: TransferRequest? = nil) {
        self.disposition = disposition
        self.credential = credential
        self.request = request
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("disposition", &disposition)
        members.optional("credential", &credential)
        members.optional("request", &request)
    }
}

/// A question in the store.
///
/// Tasks of a session that meet the same protection space share one question. It belongs to the first task, and passes
/// to the next one when that task ends.
package struct QuestionRecord: Sendable, Hashable {
    package var questionId: String
    package var task: TaskID
    package var taskIdentifier: Int64
    /// The number of tasks that wait for the answer, or waited for it.
    package var taskCount: Int64
    package var session: SessionID
    package var sessionIdentifier: String
    package var state: QuestionState
    package var question: Question
    package var createdAt: Timestamp
    package var deadline: Timestamp

    package init(
        questionId: String, task: TaskID, taskIdentifier: Int64, taskCount: Int64 = 1, session: SessionID,
        sessionIdentifier: String, state: QuestionState, question: Question, createdAt: Timestamp, deadline: Timestamp
    ) {
        self.questionId = questionId
        self.task = task
        self.taskIdentifier = taskIdentifier
        self.taskCount = taskCount
        self.session = session
        self.sessionIdentifier = sessionIdentifier
        self.state = state
        self.question = question
        self.createdAt = createdAt
        self.deadline = deadline
    }
}
