import Formats

/// The rules for redirects (RFC 9110 section 15.4, and Apple's limit of 16).
package enum Redirect {
    package static let limit = 16
    /// The maximum length of a `Location`, in bytes.
    package static let longestLocation = 8192

    package enum Decision: Hashable, Sendable {
        /// The status does not redirect: the response is final.
        case notARedirect
        /// Request the target with this method.
        /// - dropBody: Without the body and the fields that describe it.
        /// - dropHeaders: Another origin: without credentials and secrets.
        case follow(method: String, dropBody: Bool, dropHeaders: Bool)
        case fail(Refusal)
    }

    /// The reason for which a redirect ends the task.
    package enum Refusal: String, Hashable, Sendable, CaseIterable {
        /// -1007: more than ``limit``, or a redirect to its own URL.
        case tooManyRedirects
        /// -1010: no `Location`, or an unusable one.
        case unusableLocation
        /// -1002: a scheme other than http and https.
        case unsupportedScheme
        /// -1022: from https to http.
        case insecure

        /// Apple's error code.
        package var code: URLErrorCode {
            switch self {
            case .tooManyRedirects: .httpTooManyRedirects
            case .unusableLocation: .redirectToNonExistentLocation
            case .unsupportedScheme: .unsupportedURL
            case .insecure: .appTransportSecurityRequiresSecureConnection
            }
        }
    }

    package static func isRedirect(_ status: Int) -> Bool { [301, 302, 303, 307, 308].contains(status) }

    /// Decides about a response.
    ///
    /// - Parameters:
    ///   - method: The method of the request.
    ///   - hops: The number of redirects followed before.
    ///   - task: The task's own URL.
    ///   - current: The URL of the response.
    ///   - target: The resolved `Location`; `nil` if it cannot be resolved.
    package static func decide(
        head: ResponseHead, method: String, hops: Int, task: ParsedURL, current: ParsedURL, target: ParsedURL?
    ) -> Decision {
        guard isRedirect(head.status) else { return .notARedirect }
        guard hops < limit else { return .fail(.tooManyRedirects) }
        guard let location = head.fields.single("Location"), isUsable(location) else { return .fail(.unusableLocation) }
        // A fragment alone refers to the same document (RFC 3986 section 4.4).
        guard location.utf8.first != UInt8(ascii: "#") else { return .fail(.tooManyRedirects) }
        guard let target else { return .fail(hasOtherScheme(location) ? .unsupportedScheme : .unusableLocation) }
        if !target.isSecure, current.isSecure, task.isSecure { return .fail(.insecure) }
        let next = nextMethod(status: head.status, method: method)
        return .follow(method: next, dropBody: next != method, dropHeaders: current.origin != target.origin)
    }

    /// 301 and 302 turn POST into GET, 303 turns every method into GET, 307 and 308 change nothing.
    package static func nextMethod(status: Int, method: String) -> String {
        switch status {
        case 301, 302: method == "POST" ? "GET" : method
        case 303: "GET"
        default: method
        }
    }

    /// The request's fields for the next hop.
    ///
    /// - Parameter sensitive: The names that the app listed in `sensitiveHeaders`.
    package static func fields(
        _ fields: HTTPFields, dropBody: Bool, dropHeaders: Bool, sensitive: [String]
    ) -> HTTPFields {
        HTTPFields(
            fields.fields.filter { field in
                let name = field.name.asciiLowercased
                if dropBody, describesBody(name) { return false }
                guard dropHeaders else { return true }
                return !SecretHeaders.isSecret(name, besides: sensitive) && name != "cookie2" && name != "host"
            })
    }

    private static func describesBody(_ name: String) -> Bool {
        name.hasPrefix("content-")
            || ["transfer-encoding", "repr-digest", "digest", "expect", "upload-complete", "upload-length"]
                .contains(name)
    }

    /// Whether it has no control characters, no user information, and a valid length.
    private static func isUsable(_ location: String) -> Bool {
        let bytes = Array(location.utf8)
        guard !bytes.isEmpty, bytes.count <= longestLocation, !bytes.contains(where: \.isControl) else { return false }
        return !hasUserInformation(bytes)
    }

    /// Whether a location begins with an unsupported scheme.
    private static func hasOtherScheme(_ location: String) -> Bool {
        guard let colon = location.utf8.firstIndex(of: UInt8(ascii: ":")) else { return false }
        let scheme = location[..<colon].utf8.map(\.asciiLowercased)
        guard !scheme.isEmpty, scheme.allSatisfy({ $0.isLetter || $0 == UInt8(ascii: "+") }) else { return false }
        return !scheme.elementsEqual("http".utf8) && !scheme.elementsEqual("https".utf8)
    }

    /// Whether an `@` occurs in the authority.
    private static func hasUserInformation(_ bytes: [UInt8]) -> Bool {
        let (slash, colon): (UInt8, UInt8) = (0x2F, 0x3A)
        var start = 0
        if let schemeEnd = bytes.firstIndex(of: colon), bytes[..<schemeEnd].allSatisfy({ $0.isTokenCharacter }) {
            start = schemeEnd + 1
        }
        guard bytes.count >= start + 2, bytes[start] == slash, bytes[start + 1] == slash else { return false }
        let authority = bytes[(start + 2)...].prefix { $0 != slash && $0 != 0x3F && $0 != 0x23 && $0 != 0x5C }
        return authority.contains(0x40)
    }
}
