import Base
import Formats
import HTTPServer

/// gzip for text responses (RFC 9110 sections 8.4.1 and 12.5.3).
enum ContentCoding {
    /// A shorter body is sent uncompressed: compression would hardly save packets.
    static let minimumLength = 1024

    /// Whether the client accepts gzip, and prefers it at least as much as the plain text.
    static func isGzipWelcome(_ headers: RequestHeaders) -> Bool {
        var qualities: [String: Double] = [:]
        for item in headers.all("Accept-Encoding").flatMap({ $0.split(separator: ",") }) {
            let parts = item.split(separator: ";").map { $0.trimmed }
            let name = parts.first?.lowercased() ?? ""
            qualities[name == "x-gzip" ? "gzip" : name] = MediaTypes.quality(parts)
        }
        let quality = qualities["gzip"] ?? qualities["*"] ?? 0
        return quality > 0 && quality >= qualities["identity"] ?? 0
    }

    private static let pieceLength = 128 << 10

    /// Compresses in steps, between which other work runs on the thread.
    static func compress(_ bytes: [UInt8]) async -> [UInt8] {
        let gzip = Gzip(length: bytes.count)
        var compressed: [UInt8] = []
        var rest = bytes[...]
        while rest.count > pieceLength {
            compressed += gzip.add(Array(rest.prefix(pieceLength)))
            rest = rest.dropFirst(pieceLength)
            await Task.yield()
        }
        return compressed + gzip.finish(Array(rest))
    }

    /// The tag of the compressed representation, which has other bytes.
    static func tag(ofCompressed tag: String) -> String { "\(tag.dropLast())-gzip\"" }
}

extension HTTPResponse {
    /// Adds `Vary: Accept-Encoding`, because the response depends on the codings that the client accepts.
    mutating func varyByCoding() { headers.append(("Vary", "Accept-Encoding")) }

    mutating func setCompressed(_ body: HTTPResponseBody) {
        self.body = body
        headers.append(("Content-Encoding", "gzip"))
        for index in headers.indices where headers[index].0 == "ETag" {
            headers[index].1 = ContentCoding.tag(ofCompressed: headers[index].1)
        }
    }

    /// Compresses a body that is long enough if the client accepts gzip, unless the coding was chosen before.
    mutating func compress(for request: HTTPRequest) async {
        guard case .bytes(let bytes) = body, bytes.count > ContentCoding.minimumLength,
            !headers.contains(where: { $0.0 == "Vary" })
        else { return }
        varyByCoding()
        if ContentCoding.isGzipWelcome(request.headers) { setCompressed(.bytes(await ContentCoding.compress(bytes))) }
    }
}
