import Base
import Files
import HTTPServer
import Service

/// A response of any length that is complete before its head is sent, compressed if the client accepts that.
struct SpooledResponse {
    private var spool: Spool
    private let gzip: Gzip?

    init(_ call: Call) {
        spool = call.service.makeSpool()
        gzip = ContentCoding.isGzipWelcome(call.request.headers) ? Gzip() : nil
    }

    mutating func append(_ bytes: [UInt8]) async throws { try await spool.append(gzip?.add(bytes) ?? bytes) }

    /// The response, with status 200. Its length was unknown when it began, so it is compressed at any length.
    consuming func finish(_ headers: [(String, String)]) async throws -> HTTPResponse {
        if let gzip { try await spool.append(gzip.finish()) }
        let (bytes, length) = try await spool.finish()
        let body = try bytes.body(from: 0, length: length)
        var response = HTTPResponse(status: 200, headers: headers, body: body)
        response.varyByCoding()
        if gzip != nil { response.setCompressed(body) }
        return response
    }
}
