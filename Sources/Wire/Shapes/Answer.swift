/// What `POST /v1/questions/{id}/answer` takes.
public struct Answer: Shape {
    public var disposition = Disposition()
    /// With `useCredential`.
    public var credential: Credential?
    /// With `useNewRequest`.
    public var request: TransferRequest?

    public init() {}

    /// Makes an answer that needs nothing else.
    public init(_ disposition: Disposition) { self.disposition = disposition }

    /// Makes the answer to a challenge.
    public static func useCredential(_ credential: Credential) -> Answer {
        var answer = Answer(.useCredential)
        answer.credential = credential
        return answer
    }

    /// Makes the answer to a delayed request.
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

    /// The kind of the task is not known here, so the request is taken for a download's.
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
