import Base
import HTTPServer

/// A file that is part of the program, plain and compressed.
struct EmbeddedFile: Sendable {
    let type: String
    let bytes: [UInt8]
    let compressed: [UInt8]
    let tag: String

    init(_ type: String, _ start: UnsafePointer<UInt8>, _ count: Int) {
        self.type = type
        bytes = Array(UnsafeBufferPointer(start: start, count: count))
        compressed = Gzip.compress(bytes)
        tag = "\"\(Array(Digest.of(bytes).prefix(12)).hexadecimal)\""
    }
}

extension Call {
    /// An embedded file, or 304 if the client has it already.
    func embedded(_ file: EmbeddedFile, headers: [(String, String)] = []) -> HTTPResponse {
        if let unchanged = notModified(file.tag, length: file.bytes.count) { return unchanged }
        var response = HTTPResponse(
            status: 200, headers: [("Content-Type", file.type), ("ETag", file.tag)] + headers,
            body: .bytes(file.bytes))
        response.varyByCoding()
        if ContentCoding.isGzipWelcome(request.headers) { response.setCompressed(.bytes(file.compressed)) }
        return response
    }
}
