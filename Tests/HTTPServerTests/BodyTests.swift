import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct BodyTests {
    private let length = Route.whole("POST", "/x") { request in
        guard request.framing != .none, case .bytes(let bytes) = request.body else { return text("none") }
        return text("\(bytes.count) \(bytes.reduce(0) { $0 &+ Int($1) })")
    }

    @Test func `A body is collected, with a length or in chunks`() async throws {
        try await withServer([length]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("POST", "/x", body: "abc").text == "3 294")
                #expect(try client.exchange("POST", "/x", body: "").text == "0 0")
                #expect(try client.exchange("POST", "/x").text == "none")
                let chunks = (0..<100).map { _ in "a\r\n0123456789\r\n" }.joined()
                try client.request("POST", "/x", "Transfer-Encoding: chunked\r\n")
                try client.send("\(chunks)0\r\n\r\n")
                #expect(try client.answer().text == "1000 52500")
                let large = String(repeating: "a", count: 3 << 20)
                #expect(try client.exchange("POST", "/x", body: large).text == "\(3 << 20) \((3 << 20) * 97)")
            }
        }
    }

    @Test func `100-continue is sent if the handler accepts a body`() async throws {
        try await withServer([length]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("POST", "/x", "Expect: 100-continue\r\nContent-Length: 3\r\n")
                #expect(try client.head() == ["HTTP/1.1 100 Continue"])
                try client.send("abc")
                #expect(try client.answer().text == "3 294")
            }
        }
    }

    @Test func `A file is served from an offset, and its descriptor is closed`() async throws {
        let path = "/tmp/http-server-test-\(UInt64.random(in: 0 ... .max))"
        let made = open(path, O_CREAT | O_WRONLY, 0o600)
        let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        #expect(content.withUnsafeBytes { write(made, $0.baseAddress, $0.count) } == content.count)
        close(made)
        defer { unlink(path) }
        let used = Locked<Int32>(-1)
        let route = Route("GET", "/{offset}/{length}") { request in
            let file = open(path, O_RDONLY | O_CLOEXEC)
            used.withLock { $0 = file }
            return HTTPResponse(
                status: 206,
                body: .file(
                    descriptor: file, offset: Int64(request.parameters["offset"] ?? "") ?? 0,
                    length: Int64(request.parameters["length"] ?? "") ?? 0))
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                #expect(try client.exchange("GET", "/0/200000").body == content)
                #expect(try client.exchange("GET", "/1000/100001").body == Array(content[1000..<101_001]))
                #expect(try client.exchange("GET", "/5/0").body == [])
                let head = try client.exchange("HEAD", "/1000/77")
                #expect(head["Content-Length"] == "77")
                #expect(try client.exchange("GET", "/1/1").body == [0])
            }
        }
    }
}
