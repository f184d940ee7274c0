import HTTPServer
import TestSupport
import Testing

/// Responses of a known length whose bytes are produced while they are sent.
struct SizedAnswerTests {
    private struct Broken: Error {}

    private static let length = 300_000

    /// A route that sends some of the announced bytes, and may then throw.
    private func route(sending count: Int, thenThrows: Bool) -> Route {
        Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .sized(length: Int64(Self.length)) { writer in
                    for start in stride(from: 0, to: count, by: 1000) {
                        try await writer.write([UInt8](repeating: 7, count: min(1000, count - start)))
                    }
                    if thenThrows { throw Broken() }
                })
        }
    }

    @Test func `A body of known length keeps the connection open`() async throws {
        try await withServer([route(sending: Self.length, thenThrows: false)]) { server in
            let answers = try await onThread {
                let client = try RawClient(server.port)
                return try (0..<2).map { _ in
                    try client.request("GET", "/x")
                    return try client.answer()
                }
            }
            for answer in answers {
                #expect(answer.status == 200 && answer.body == [UInt8](repeating: 7, count: Self.length))
                #expect(answer["Content-Length"] == "\(Self.length)" && answer["Transfer-Encoding"] == nil)
            }
        }
    }

    @Test(arguments: [(100_000, true), (100_000, false), (0, true)])
    func `A body that is shorter than announced closes the connection`(_ count: Int, _ thenThrows: Bool) async throws {
        try await withServer([route(sending: count, thenThrows: thenThrows)]) { server in
            try await onThread {
                let client = try RawClient(server.port)
                try client.request("GET", "/x")
                #expect(throws: (any Error).self) { _ = try client.answer() }
            }
        }
    }
}
