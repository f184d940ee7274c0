/// The body of `POST /v1/questions/{id}/answer`.
public struct Answer: Shape {
    public var disposition = Disposition()
    /// The credential of `useCredential`.
    public var credential: Credential?
    /// The request of `useNewRequest`.
    public var request: TransferRequest?

    public init() {}

    /// Creates an answer without a credential or request.
    public init(_ disposition: Disposition) { self.disposition = disposition }

    /// Creates the answer to a challenge.
    public static func useCredential(_ credential: Credential) -> Answer {
        var answer = Answer(.useCredential)
        answer.credential = credential
        return answer
    }

    /// Creates the answer to a delayed request.
    public static func useNewRequest(_ request: TransferRequest) -> Answer {
        var answer = Answer(.useNewRequest)
        answer.request = request
        return answer
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("disposition", &disposition)
        members.optional("credential", &credential)
        members.optional("request", &request)
    }

    /// The kind of the task is unknown here, so the request is checked as a download's.
    public func check(_ reader: inout ObjectReader) {
        request?.check(as: .download, at: "request", &reader)
        guard disposition.isKnown else { return }
        if (disposition == .useCredential) != (reader.presence(of: "credential") == .present) {
            reader.report("credential", "Only useCredential has a credential.")
        }
        if (disposition == .useNewRequest) != (reader.presence(of: "request") == .present) {
            reader.report("request", "Only useNewRequest has a request.")
        }
        if request?.body != nil { reader.report("request", "A task keeps its body; a new request has none.") }
    }
}
