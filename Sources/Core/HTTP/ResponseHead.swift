/// The status and header fields of an origin's final response.
package struct ResponseHead: Hashable, Sendable {
    package var status: Int
    package var fields: HTTPFields
    /// `1.0`, `1.1`, `2`.
    package var httpVersion: String

    package init(status: Int, fields: HTTPFields, httpVersion: String = "1.1") {
        self.status = status
        self.fields = fields
        self.httpVersion = httpVersion
    }
}
