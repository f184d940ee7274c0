/// A response stored for a repeated request.
package struct StoredAnswer: Hashable, Sendable {
    package var status: Int
    package var headers: HTTPFields
    package var body: [UInt8]
    /// Whether the body holds a secret, so that it is sealed.
    package var holdsSecrets: Bool

    package init(status: Int, headers: HTTPFields, body: [UInt8], holdsSecrets: Bool = false) {
        self.status = status
        self.headers = headers
        self.body = body
        self.holdsSecrets = holdsSecrets
    }
}

/// Stores the response to a request with an `Idempotency-Key` in the commit that performs the request.
package struct Recording<Result>: Sendable {
    package let principal: String
    package let key: String
    package let fingerprint: [UInt8]
    package let answer: @Sendable (Result) -> StoredAnswer

    /// - Parameters:
    ///   - principal: The owner of the key; keys of different principals are independent.
    ///   - fingerprint: SHA-256 of method, path and body.
    ///   - answer: Renders the result, on the writer's thread.
    package init(
        principal: String, key: String, fingerprint: [UInt8], answer: @escaping @Sendable (Result) -> StoredAnswer
    ) {
        self.principal = principal
        self.key = key
        self.fingerprint = fingerprint
        self.answer = answer
    }
}
