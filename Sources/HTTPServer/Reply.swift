import CMicroHTTPD
import Glibc

/// A response in libmicrohttpd's hands. Corresponds to `struct MHD_Response *`.
struct Reply: ~Copyable {
    private let handle: OpaquePointer

    /// - Parameter writer: Feeds a streamed body; `nil` for its head alone.
    init(_ body: HTTPResponseBody, _ writer: ResponseWriter?) {
        let made: OpaquePointer? =
            switch body {
            case .none: MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
            case .bytes(let bytes):
                bytes.withUnsafeBytes {
                    MHD_create_response_from_buffer(
                        $0.count, UnsafeMutableRawPointer(mutating: $0.baseAddress), .RESPMEM_MUST_COPY)
                }
            case .file(let descriptor, let offset, let length):
                Self.made(descriptor, offset, length)
            case .stream: Self.made(.max, block: 1024, writer)
            case .sized(let length, _): Self.made(UInt64(length), block: 1 << 15, writer)
            }
        guard let made else { preconditionFailure("MHD_create_response: out of memory") }
        handle = made
        guard case .stream = body, writer == nil else { return }
        // libmicrohttpd 0.9.75 ends the empty body of a chunked HEAD with "0", which the client would read as the next
        // response.
        let code = mhd_end_with_connection(handle)
        precondition(code == .YES, "MHD_set_response_options")
    }

    /// - Parameter length: `.max` if it is unknown.
    private static func made(_ length: UInt64, block: Int, _ writer: ResponseWriter?) -> OpaquePointer? {
        let body = writer.map(StreamedBody.init)
        let made = MHD_create_response_from_callback(
            length, block, readStream, body.map { Unmanaged.passRetained($0).toOpaque() }, freeStream)
        body?.reply = made
        return made
    }

    private static func made(_ descriptor: Int32, _ offset: Int64, _ length: Int64) -> OpaquePointer? {
        guard length > 0 else {
            close(descriptor)
            return MHD_create_response_from_buffer(0, nil, .RESPMEM_PERSISTENT)
        }
        return MHD_create_response_from_fd_at_offset64(UInt64(length), descriptor, UInt64(offset))
    }

    deinit { MHD_destroy_response(handle) }

    /// Adds the fields. Returns the names of the fields that libmicrohttpd rejects: line breaks, empty values.
    mutating func add(_ headers: [(String, String)], requestID: String, closes: Bool) -> [String] {
        var refused: [String] = []
        for (name, value) in headers where !isOurs(name) {
            if MHD_add_response_header(handle, name, value) != .YES { refused.append(name) }
        }
        if MHD_add_response_header(handle, "X-Request-Id", requestID) != .YES { refused.append("X-Request-Id") }
        if closes, MHD_add_response_header(handle, "Connection", "close") != .YES { refused.append("Connection") }
        return refused
    }

    consuming func queue(on connection: ConnectionHandle, status: Int) -> Bool {
        MHD_queue_response(connection.pointer, UInt32(status), handle) == .YES
    }
}

/// Whether the server itself writes the field.
func isOurs(_ name: String) -> Bool {
    switch name.utf8.count {
    case 10: equalIgnoringASCIICase(name, "Connection")
    case 12: equalIgnoringASCIICase(name, "X-Request-Id")
    case 14: equalIgnoringASCIICase(name, "Content-Length")
    case 17: equalIgnoringASCIICase(name, "Transfer-Encoding")
    default: false
    }
}

/// The context of a body's callbacks. Used on libmicrohttpd's thread.
private final class StreamedBody {
    let writer: ResponseWriter
    /// The response that the body belongs to, which lives until the last callback.
    var reply: OpaquePointer?

    init(_ writer: ResponseWriter) { self.writer = writer }
}

private let readStream: MHD_ContentReaderCallback = { context, _, buffer, size in
    guard let context, let buffer else { return mhd_end_of_stream }
    let body = Unmanaged<StreamedBody>.fromOpaque(context).takeUnretainedValue()
    let count = body.writer.read(into: UnsafeMutableRawBufferPointer(start: buffer, count: size))
    // The library sends the footers of a chunked body after this.
    if count == mhd_end_of_stream, let reply = body.reply {
        for (name, value) in body.writer.trailers { MHD_add_response_footer(reply, name, value) }
    }
    return count
}

/// Called when libmicrohttpd is done with the stream.
private let freeStream: MHD_ContentReaderFreeCallback = { context in
    if let context { Unmanaged<StreamedBody>.fromOpaque(context).release() }
}

extension HTTPResponseBody {
    /// Frees the resources of a response that will not be sent.
    func discard() {
        if case .file(let descriptor, _, _) = self { close(descriptor) }
    }
}

/// A response as bytes, for situations in which libmicrohttpd accepts none.
enum RawAnswer {
    /// `nil` for a body that is not in memory, or larger than a fresh socket buffer accepts at once.
    static func bytes(_ response: HTTPResponse, requestID: String, isHead: Bool) -> [UInt8]? {
        var body: [UInt8] = []
        switch response.body {
        case .none: break
        case .bytes(let bytes) where bytes.count <= 16_384: body = bytes
        case .bytes, .file, .stream, .sized: return nil
        }
        let reason = MHD_get_reason_phrase_for(UInt32(response.status)).map { String(cString: $0) } ?? ""
        var head = "HTTP/1.1 \(response.status) \(reason)\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
        head += "X-Request-Id: \(requestID)\r\n"
        for (name, value) in response.headers where !isOurs(name) {
            guard !(name + value).utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { continue }
            head += "\(name): \(value)\r\n"
        }
        return Array((head + "\r\n").utf8) + (isHead ? [] : body)
    }
}
