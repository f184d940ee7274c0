import Formats

/// File names from untrusted sources, reduced to names that no file system interprets as paths.
package enum FileName {
    /// The maximum length of common file systems, in bytes of UTF-8.
    static let longest = 255

    /// The last part of a name without control characters, shortened to 255 bytes while keeping its extension.
    ///
    /// - Returns: `nil` if nothing usable remains: empty, `.` or `..`.
    package static func safe(_ name: String) -> String? {
        if isSafe(name) { return name }
        let base = name.unicodeScalars.split(whereSeparator: { $0 == "/" || $0 == "\\" }).last ?? [][...]
        // Shortening may leave a space or a dot at the end.
        let safe = trimmed(shortened(trimmed(base.filter { !$0.isUnsafeInFileName })).unicodeScalars)
        return safe.isEmpty ? nil : safe
    }

    /// The name without spaces around it, and without dots at its end.
    private static func trimmed(_ name: some BidirectionalCollection<Unicode.Scalar>) -> String {
        let rest = name.drop { $0 == " " }
        let end = rest.lastIndex { $0 != " " && $0 != "." }
        return String(String.UnicodeScalarView(end.map { rest[...$0] } ?? rest.prefix(0)))
    }

    /// Whether a name is safe by a fast check of its bytes.
    private static func isSafe(_ name: String) -> Bool {
        let bytes = name.utf8
        guard (1...longest).contains(bytes.count), bytes.first != 0x20, bytes.last != 0x20, bytes.last != 0x2E else {
            return false
        }
        return bytes.allSatisfy { 0x20 <= $0 && $0 < 0x7F && $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "\\") }
    }

    /// The natural file name for the content of a response, like Apple's `suggestedFilename`: from
    /// `Content-Disposition`, otherwise the URL's last part, otherwise its host. A name without an extension gets one
    /// for the media type.
    package static func suggested(url: String, fields: HTTPFields) -> String {
        if let given = fields["Content-Disposition"].flatMap(ContentDisposition.init)?.filename { return given }
        let (host, lastPart) = parts(of: url)
        let own = lastPart.flatMap(safe)
        if let own, own.utf8.dropFirst().contains(0x2E) { return own }
        let name = own ?? safe(host) ?? "Unknown"
        guard let type = fields["Content-Type"].flatMap({ MediaType($0) }), let ending = endings[type.essence]
        else { return name }
        return shortened("\(name).\(ending)")
    }

    /// The host and the percent-decoded last part of the path, which is `nil` for a path that is empty or ends in `/`.
    private static func parts(of url: String) -> (host: String, lastPart: String?) {
        var rest = Array(url.utf8).prefix { $0 != 0x3F && $0 != 0x23 }[...]
        if let colon = rest.firstIndex(of: 0x3A), rest[colon...].starts(with: Array("://".utf8)) {
            rest = rest[(colon + 3)...]
        }
        let authority = rest.prefix { $0 != 0x2F }
        let path = rest[authority.endIndex...]
        let host = authority.split(separator: 0x40).last?.prefix { $0 != 0x3A } ?? []
        let last = path.split(separator: 0x2F, omittingEmptySubsequences: false).last ?? []
        let decoded = PercentCoding.decode(last).bytes
        return (String(decoding: host, as: UTF8.self), last.isEmpty ? nil : String(decoding: decoded, as: UTF8.self))
    }

    private static func shortened(_ name: String) -> String {
        guard name.utf8.count > longest else { return name }
        let bytes = Array(name.utf8)
        // An extension of more than 16 bytes is not worth keeping.
        let dot = bytes.lastIndex(of: 0x2E).flatMap { $0 > 0 && bytes.count - $0 <= 17 ? $0 : nil }
        let ending = dot.map { Array(bytes[$0...]) } ?? []
        var kept = Array(bytes[..<(dot ?? bytes.count)].prefix(longest - ending.count))
        // Cut between characters: no trailing start or middle of a UTF-8 sequence.
        let whole = bytes[kept.count] & 0xC0 == 0x80
        while whole, let last = kept.last {
            kept.removeLast()
            if last & 0xC0 == 0xC0 { break }
        }
        return String(decoding: kept + ending, as: UTF8.self)
    }

    /// Extensions of media types that are frequent in downloads.
    private static let endings = [
        "application/gzip": "gz", "application/javascript": "js", "application/json": "json",
        "application/pdf": "pdf", "application/vnd.api+json": "json", "application/xml": "xml",
        "application/x-tar": "tar", "application/zip": "zip", "application/zstd": "zst", "audio/mp4": "m4a",
        "audio/mpeg": "mp3", "audio/wav": "wav", "image/avif": "avif", "image/gif": "gif", "image/heic": "heic",
        "image/jpeg": "jpg", "image/png": "png", "image/svg+xml": "svg", "image/tiff": "tiff",
        "image/webp": "webp", "text/css": "css", "text/csv": "csv", "text/html": "html",
        "text/javascript": "js", "text/markdown": "md", "text/plain": "txt", "text/xml": "xml",
        "video/mp4": "mp4", "video/quicktime": "mov", "video/webm": "webm",
    ]
}

extension Unicode.Scalar {
    /// Control characters, and marks that change the reading direction, so that `exe.txt` could hide `txt.exe`.
    fileprivate var isUnsafeInFileName: Bool {
        switch value {
        case 0..<0x20, 0x7F..<0xA0, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069, 0xFEFF, 0xFFFD: true
        default: false
        }
    }
}
