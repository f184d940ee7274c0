import Base
import HTTPServer
import TestSupport
import Testing

/// Requests that two parsers read differently are refused, the connection is closed, and the hidden request never runs.
struct FramingTests {
    static let forms: [(name: String, head: String)] = [
        ("two lengths", "Content-Length: 3\r\nContent-Length: 60\r\n"),
        ("two equal lengths", "Content-Length: 3\r\nContent-Length: 3\r\n"),
        ("length list", "Content-Length: 3, 3\r\n"),
        ("signed length", "Content-Length: +3\r\n"),
        ("coding and length", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
        ("length and coding", "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
        ("space after coding's name", "Transfer-Encoding : chunked\r\n"),
        ("space after length's name", "Content-Length : 3\r\n"),
        ("space after the coding", "Transfer-Encoding: chunked \r\n"),
        ("space after the length", "Content-Length: 3 \r\n"),
        ("unknown coding", "Transfer-Encoding: xchunked\r\n"),
        ("two codings", "Transfer-Encoding: gzip, chunked\r\n"),
        ("coding twice", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
        ("identity", "Transfer-Encoding: identity\r\n"),
        ("second host", "Host: other\r\nContent-Length: 3\r\n"),
        ("bare LF", "A: b\nContent-Length: 3\r\n"),
        ("bare CR in a value", "A: b\rc\r\nContent-Length: 3\r\n"),
        ("folded line", "A: b\r\n c\r\nContent-Length: 3\r\n"),
        ("folded name", "Authorizatio: forged\r\n n: x\r\nContent-Length: 3\r\n"),
        ("NUL in a value", "A: b\0c\r\nContent-Length: 3\r\n"),
        ("leading space", " A: b\r\nContent-Length: 3\r\n"),
        ("empty name", ": b\r\nContent-Length: 3\r\n"),
        ("name with a slash", "a/b: c\r\nContent-Length: 3\r\n"),
        ("tab before the colon", "A\t: c\r\nContent-Length: 3\r\n"),
    ]

    @Test(arguments: forms) func `An ambiguous request is refused, and no hidden request runs`(
        _ form: (name: String, head: String)
    ) async throws {
        let runs = Locked(0)
        let handler: Route.Handler = { _ in
            runs.withLock { $0 += 1 }
            return text("ran")
        }
        let routes = [
            Route.whole("POST", "/x", handler), Route("GET", "/hidden", handler),
        ]
        try await withServer(routes) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
                try client.send("POST /x HTTP/1.1\r\nHost: a\r\n\(form.head)\r\nabc\(hidden)\(hidden)")
                #expect(try client.answer().status == 400, "\(form.name)")
                #expect(client.isClosed())
            }
        }
        #expect(runs.read() == 0)
    }

    static let lines: [(line: String, status: Int)] = [
        ("GET http://other/x HTTP/1.1\r\nHost: a\r\n", 200),
        ("GET http://other/x HTTP/1.1\r\n", 400),
        ("GET http://user@other/x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET http:///x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET http://other#x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET ftp://other/x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET /x HTTP/1.1\r\n", 400),
        ("GET /x HTTP/1.1\nHost: a\r\n", 400),
        ("GET /x\0y HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET  /x HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET /x HTTP/1.2\r\nHost: a\r\n", 400),
        ("GET /x#y HTTP/1.1\r\nHost: a\r\n", 400),
        ("GET /\u{e9} HTTP/1.1\r\nHost: a\r\n", 400),
        ("POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n", 400),
        ("GET /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n", 200),
        ("GET /x HTTP/1.1\r\nHost: a\r\nExpect: 200-ok\r\n", 417),
        ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: a\r\n", 414),
        ("GET /x HTTP/1.1\r\nHost: a\r\nA: \(String(repeating: "a", count: 33_000))\r\n", 431),
    ]

    @Test(arguments: lines) func `A malformed head gets its status`(_ form: (line: String, status: Int)) async throws {
        try await withServer([Route("GET", "/x") { _ in text("") }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.send("\(form.line)\r\n")
                #expect(try client.answer().status == form.status, "\(form.line.prefix(60))")
            }
        }
    }

    @Test(arguments: ["garbage", "GET", "GET\t/x\tHTTP/1.1\r\nHost: a", " GET /x HTTP/1.1\r\nHost: a"])
    func `A first line that the library cannot divide closes the connection`(_ head: String) async throws {
        try await withServer([Route("GET", "/x") { _ in text("x") }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.send("\(head)\r\n\r\n")
                // libmicrohttpd 0.9.75 does not respond.
                let answer = String(decoding: try client.rest(), as: UTF8.self)
                #expect(answer.isEmpty || answer.hasPrefix("HTTP/1.1 400"), "\(answer)")
                #expect(try RawClient(server.port).exchange("GET", "/x").text == "x")
            }
        }
    }

    @Test func `A trailer is no header, and a request after a malformed one does not run`() async throws {
        let runs = Locked<[String]>([])
        let route = Route.whole("POST", "/x") { request in
            runs.withLock { $0.append(request.headers["Authorization"] ?? "none") }
            return text("ok")
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.send(
                    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
                        + "Authorization: forged\r\n\r\n")
                #expect(try client.answer().status == 200)
                let second = "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"
                try client.send("POST /x HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Length: 0\r\n\r\n\(second)")
                #expect(try client.answer().status == 400)
                #expect(client.isClosed())
            }
        }
        #expect(runs.read() == ["none"])
    }

    @Test func `Valid heads of every shape are accepted`() async throws {
        let route = Route("GET", "/x") { request in text(request.headers.fields.map(\.name).joined(separator: ",")) }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                let many = (0..<100).map { "H\($0): \($0)\r\n" }.joined()
                let answer = try client.exchange(
                    "GET", "/x?a=b&c", "Empty:\r\nSpaced:   v  \r\nTab:\tv\r\nCookie: a=b; c=d\r\n\(many)")
                #expect(answer.status == 200)
                #expect(answer.text.hasPrefix("Host,Empty,Spaced,Tab,Cookie,H0,"))
                let long = try client.exchange("GET", "/x", "Long: \(String(repeating: "a", count: 31_000))\r\n\(many)")
                #expect(long.status == 200)
                try client.send("\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost:a\r\n\r\n")
                #expect(try client.answer().text == "Host")
                #expect(try client.answer().text == "Host")
                for byte in "GET /x HTTP/1.1\r\nHost: a\r\nB: c\r\n\r\n".utf8 { try client.send([byte]) }
                #expect(try client.answer().text == "Host,B")
            }
        }
    }
}
