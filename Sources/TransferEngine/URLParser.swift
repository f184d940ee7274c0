import CCurl
package import Core
import Glibc

/// The reason for which a text is no URL that the engine can fetch.
package enum BadURL: Error, Hashable, Sendable {
    case malformed
    case unsupportedScheme
    /// User names and passwords are not allowed in URLs.
    case credentials
    /// Control characters, spaces, backslashes, percent signs or zones at places where they could deceive.
    case forbiddenCharacter
    case badHost
    case tooLong
}

extension ParsedURL {
    package static let maximumLength = 8192

    /// Parses an absolute http or https URL with `curl_url`, the parser of the transfer itself: a second parser that
    /// disagrees about the host would be a vulnerability.
    package init(_ text: String) throws(BadURL) {
        try Self.checkCharacters(text, allowSpaces: false)
        guard Self.authority(of: text) != nil else { throw .malformed }
        let handle = try URLHandle()
        try handle.set(CURLUPART_URL, text, flags: CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE)
        self = try Self.parts(of: handle, from: text)
    }

    /// The URL of a `Location`, resolved against `base` (RFC 3986 section 5). Spaces are encoded, as in all browsers.
    package init(location: String, from base: ParsedURL) throws(BadURL) {
        try Self.checkCharacters(location, allowSpaces: true)
        guard !location.isEmpty else { throw .malformed }
        guard location.utf8.first != UInt8(ascii: "#") else {
            // The same document (RFC 3986 section 4.4). libcurl 7.88 would remove its path.
            self = base
            return
        }
        let handle = try URLHandle()
        try handle.set(CURLUPART_URL, base.text)
        try handle.set(
            CURLUPART_URL, location, flags: CURLU_NON_SUPPORT_SCHEME | CURLU_URLENCODE | CURLU_ALLOW_SPACE)
        self = try Self.parts(of: handle, from: location)
    }

    private static func parts(of handle: URLHandle, from text: String) throws(BadURL) -> ParsedURL {
        try check(handle, authorityIn: text)
        var handle = handle
        if let host = handle.get(CURLUPART_HOST), !host.utf8.allSatisfy({ $0 < 0x80 }) {
            // Parsed again after IDNA: a name may have become an address.
            guard let ascii = UnicodeLocale.use({ handle.get(CURLUPART_URL, flags: CURLU_PUNYCODE) }) else {
                throw .badHost
            }
            handle = try URLHandle()
            try handle.set(CURLUPART_URL, ascii)
            try check(handle, authorityIn: ascii)
        }
        if let host = handle.get(CURLUPART_HOST), let address = addressWithFinalDot(host.asciiLowercased) {
            // Parsed again: libcurl takes it for a name otherwise, which a proxy may take for an address.
            try handle.set(CURLUPART_HOST, address)
            guard let text = handle.get(CURLUPART_URL) else { throw .badHost }
            handle = try URLHandle()
            try handle.set(CURLUPART_URL, text)
        }
        try handle.clear(CURLUPART_FRAGMENT)
        if let host = handle.get(CURLUPART_HOST), host.utf8.contains(where: { (0x41...0x5A).contains($0) }) {
            try handle.set(CURLUPART_HOST, host.asciiLowercased)
        }
        return try assemble(handle)
    }

    /// The host without its final dot, if its last label is a number (URL Standard, "ends in a number").
    private static func addressWithFinalDot(_ host: String) -> String? {
        guard host.utf8.last == UInt8(ascii: ".") else { return nil }
        let address = host.utf8.dropLast()
        let label = address.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).last ?? address
        let isNumber =
            label.starts(with: "0x".utf8)
            ? label.dropFirst(2).allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
            : !label.isEmpty && label.allSatisfy { (0x30...0x39).contains($0) }
        return isNumber ? String(host.dropLast()) : nil
    }

    private static func assemble(_ handle: URLHandle) throws(BadURL) -> ParsedURL {
        guard let scheme = handle.get(CURLUPART_SCHEME), let rawHost = handle.get(CURLUPART_HOST),
            let portText = handle.get(CURLUPART_PORT, flags: CURLU_DEFAULT_PORT), let port = UInt16(portText), port > 0,
            let text = handle.get(CURLUPART_URL)
        else { throw .malformed }
        let host: String
        if rawHost.utf8.first == UInt8(ascii: "[") {
            host = String(rawHost.dropFirst().dropLast())
            guard IPAddress(host) != nil else { throw .badHost }
        } else {
            host = rawHost.asciiLowercased
            guard host.utf8.allSatisfy(isHostByte), host.utf8.count <= 255 else { throw .badHost }
        }
        guard text.utf8.count <= maximumLength else { throw .tooLong }
        return ParsedURL(text: text, isSecure: scheme == "https", host: host, port: port)
    }

    private static func check(_ handle: URLHandle, authorityIn text: String) throws(BadURL) {
        let scheme = handle.get(CURLUPART_SCHEME)
        guard scheme == "http" || scheme == "https" else { throw .unsupportedScheme }
        guard handle.get(CURLUPART_USER) == nil, handle.get(CURLUPART_PASSWORD) == nil else { throw .credentials }
        guard handle.get(CURLUPART_ZONEID) == nil else { throw .forbiddenCharacter }
        guard let authority = authority(of: text) else { return }
        guard !authority.isEmpty else { throw .badHost }
        guard !authority.contains(UInt8(ascii: "@")) else { throw .credentials }
        guard !authority.contains(UInt8(ascii: "%")) else { throw .forbiddenCharacter }
        guard !authority.contains(UInt8(ascii: ":")) || authority.last != UInt8(ascii: ":") else { throw .malformed }
    }

    /// The bytes between `//` and the path, if any.
    private static func authority(of text: String) -> ArraySlice<UInt8>? {
        let bytes = Array(text.utf8)
        var start = 0
        if let colon = bytes.firstIndex(of: UInt8(ascii: ":")), !bytes[..<colon].contains(UInt8(ascii: "/")) {
            start = colon + 1
        }
        guard bytes[start...].starts(with: [0x2F, 0x2F]) else { return nil }
        let rest = bytes[(start + 2)...]
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        return rest[..<(end ?? rest.endIndex)]
    }

    private static func checkCharacters(_ text: String, allowSpaces: Bool) throws(BadURL) {
        guard text.utf8.count <= maximumLength else { throw .tooLong }
        for byte in text.utf8 {
            if byte < 0x20 || byte == 0x7F || byte == UInt8(ascii: "\\") { throw .forbiddenCharacter }
            if byte == 0x20 && !allowSpaces { throw .forbiddenCharacter }
        }
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"): true
        default: false
        }
    }
}

/// A URL while it is parsed. Corresponds to `CURLU *`.
private final class URLHandle {
    private let raw: OpaquePointer

    init() throws(BadURL) {
        guard let raw = curl_url() else { throw .malformed }
        self.raw = raw
    }

    deinit { curl_url_cleanup(raw) }

    func set(_ part: CURLUPart, _ text: String, flags: Int32 = 0) throws(BadURL) {
        let code = curl_url_set(raw, part, text, UInt32(flags))
        switch code {
        case CURLUE_OK: return
        case CURLUE_UNSUPPORTED_SCHEME: throw .unsupportedScheme
        case CURLUE_BAD_HOSTNAME, CURLUE_NO_HOST, CURLUE_BAD_IPV6: throw .badHost
        default: throw .malformed
        }
    }

    func clear(_ part: CURLUPart) throws(BadURL) {
        guard curl_url_set(raw, part, nil, 0) == CURLUE_OK else { throw .malformed }
    }

    func get(_ part: CURLUPart, flags: Int32 = 0) -> String? {
        var text: UnsafeMutablePointer<CChar>?
        guard curl_url_get(raw, part, &text, UInt32(flags)) == CURLUE_OK, let text else { return nil }
        defer { curl_free(text) }
        return String(cString: text)
    }
}

/// libidn2 reads names in the thread's locale, so that the same URL could mean different hosts on different machines.
private enum UnicodeLocale {
    private struct Handle: @unchecked Sendable {
        // Unchecked: a locale object is not changed once it is made.
        let raw: locale_t?
    }

    private static let utf8 = Handle(raw: newlocale(LC_CTYPE_MASK, "C.UTF-8", nil))

    static func use<Result>(_ body: () -> Result?) -> Result? {
        guard let locale = utf8.raw, let before = uselocale(locale) else { return nil }
        defer { uselocale(before) }
        return body()
    }
}
