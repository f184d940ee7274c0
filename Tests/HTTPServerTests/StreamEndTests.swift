import HTTPServer
import TestSupport
import Testing

/// Trailer fields of a chunked body.
struct StreamEndTests {
    @Test func `Trailer fields may follow the last chunk, on a connection that is kept`() async throws {
        let route = Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try await writer.write(Array("abc".utf8))
                    writer.addTrailer("Repr-Digest", "sha-256=:YQ==:")
                })
        }
        try await withServer([route]) { server in
            let answer = try await onThread {
                let client = try RawClient(server.port)
                for _ in 0..<2 { try client.request("GET", "/x") }
                try client.request("GET", "/x", "Connection: close\r\n")
                return String(decoding: try client.rest(), as: UTF8.self)
            }
            let end = "3\r\nabc\r\n0\r\nRepr-Digest: sha-256=:YQ==:\r\n\r\n"
            #expect(answer.ranges(of: end).count == 3 && answer.hasSuffix(end), "\(answer)")
        }
    }

    @Test func `An interrupted chunked body has no last chunk`() async throws {
        struct Broken: Error {}
        let route = Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try await writer.write(Array("abc".utf8))
                    throw Broken()
                })
        }
        try await withServer([route]) { server in
            let answer = try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/x")
                return String(decoding: try client.rest(), as: UTF8.self)
            }
            #expect(answer.hasSuffix("3\r\nabc\r\n"), "\(answer)")
        }
    }
}
