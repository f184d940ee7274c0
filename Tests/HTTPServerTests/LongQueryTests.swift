import Glibc
import HTTPServer
import TestSupport
import Testing

struct LongQueryTests {
    @Test(arguments: [1, 599, 601, 1000, 4000])
    func `Every parameter of a URL within its limit reaches the handler`(_ count: Int) async throws {
        let route = Route("GET", "/x") { request in
            text("\(request.query.count) \(request.query.allSatisfy { $0 == ("a", "") || $0 == ("a", "1") })")
        }
        let pairs = Array(repeating: count > 2000 ? "a" : "a=1", count: count)
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                for _ in 0..<2 {
                    #expect(try client.exchange("GET", "/x?\(pairs.joined(separator: "&"))").text == "\(count) true")
                }
                #expect(try client.exchange("GET", "/x?").text == "0 true")
                #expect(try client.exchange("GET", "/x?a=1").text == "1 true")
            }
        }
    }

    @Test func `Header fields beyond the limit are refused`() async throws {
        try await withServer([Route("GET", "/x") { _ in text("x") }]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/x", String(repeating: "a: b\r\n", count: 2000))
                #expect(try client.answer().status == 431)
            }
        }
    }
}
