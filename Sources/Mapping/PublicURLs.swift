/// The URLs that the service gives out, on its configured public base and never on what a request called it.
package struct PublicURLs: Sendable {
    private let base: String

    /// - Parameter base: Such as `https://transfers.example.com`; a slash at the end changes nothing.
    package init(base: String) {
        var base = base
        while base.utf8.last == UInt8(ascii: "/") { base.removeLast() }
        self.base = base
    }

    package func session(_ identifier: String) -> String { "\(base)/v1/sessions/\(Self.segment(identifier))" }

    package func events(of session: String) -> String { self.session(session) + "/events" }

    package func content(of task: Int64, in session: String) -> String {
        self.session(session) + "/tasks/\(task)/content"
    }

    package func completion(of launchId: String) -> String { "\(base)/v1/launches/\(launchId)/complete" }

    /// A path segment: unreserved characters, `:`, `@` and `+` as they are, the rest percent-encoded (RFC 3986
    /// section 3.3). Of a session's identifier that leaves everything as it is.
    static func segment(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x3A, 0x40...0x5A, 0x61...0x7A, 0x2B, 0x2D, 0x2E, 0x5F, 0x7E: result.append(byte)
            default: result += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}
