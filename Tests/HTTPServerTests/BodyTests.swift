import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct BodyTests {
    private let length = Route("POST", "/x", body: .collect(limit: 3 << 20)) { request in
        switch request.body {
        case .none: text("none")
        case .bytes(let bytes): text("\(bytes.count) \(bytes.reduce(0) { $0 &+ Int($1) })")
        case .stream: text("stream")
        }
    }

    @Test func `A body is collected, with a length and in chunks`() async throws {
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

    @Test func `An over-long body is refused before it is read, its client reads the answer`() async throws {
        try await withServer([length]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("POST", "/x", "Content-Length: 5000000\r\n")
                try? client.send([UInt8](repeating: 0x61, count: 2_000_000))
                #expect(try client.answer().status == 413)
                #expect(client.isClosed())
            }
        }
    }

    @Test func `An over-long body in chunks is refused at the limit`() async throws {
        try await withServer([length]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("POST", "/x", "Transfer-Encoding: chunked\r\n")
                let chunk = "10000\r\n\(String(repeating: "a", count: 65_536))\r\n"
                for _ in 0..<60 { try? client.send(chunk) }
                let answer = try client.answer()
                #expect(answer.status == 413)
                #expect(answer["X-Request-Id"] != nil)
                #expect(client.isClosed())
            }
        }
    }

    @Test func `100-continue is sent for a body that is wanted, and a refusal for one that is not`() async throws {
        try await withServer([length]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("POST", "/x", "Expect: 100-continue\r\nContent-Length: 3\r\n")
                #expect(try client.head() == ["HTTP/1.1 100 Continue"])
                try client.send("abc")
                #expect(try client.answer().text == "3 294")
                try client.request("POST", "/x", "Expect: 100-continue\r\nContent-Length: 4000000\r\n")
                #expect(try client.answer().status == 413)
            }
        }
    }

    @Test func `Large bodies share a budget`() async throws {
        var limits = ServerLimits()
        limits.smallBodyBytes = 1000
        limits.sharedBodyBytes = 3 << 20
        try await withServer([length], limits: limits) { server in
            try await onThread {
                let first = try RawClient(server.port)
                try first.request("POST", "/x", "Expect: 100-continue\r\nContent-Length: 3000000\r\n")
                #expect(try first.head() == ["HTTP/1.1 100 Continue"])  // It has its share.
                let second = try RawClient(server.port)
                let refused = try RawClient(server.port)
                try refused.request("POST", "/x", "Expect: 100-continue\r\nContent-Length: 2000000\r\n")
                #expect(try refused.answer().status == 503)
                #expect(try second.exchange("POST", "/x", body: String(repeating: "a", count: 1000)).status == 200)
                try second.request("POST", "/x", "Transfer-Encoding: chunked\r\n")
                try second.send("800\r\n\(String(repeating: "a", count: 2048))\r\n")
                #expect(try second.answer().status == 503)
                try first.send([UInt8](repeating: 0x61, count: 3_000_000))
                #expect(try first.answer().status == 200)
            }
            let isBack = try await onThread {
                let body = String(repeating: "a", count: 2_000_000)
                return blockingUntil {
                    guard let probe = try? RawClient(server.port) else { return false }
                    try? probe.request("POST", "/x", "Content-Length: 2000000\r\n")
                    try? probe.send(body)
                    return (try? probe.answer().status) == 200
                }
            }
            #expect(isBack)
        }
    }

    @Test func `A file is served from an offset and its descriptor closed`() async throws {
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
