import Base
import Glibc
import HTTPServer
import TestSupport
import Testing

struct StreamMemoryTests {
    @Test func `A stream buffers little for a client that does not read`() async throws {
        let written = Locked(0)
        let route = Route("GET", "/x") { _ in
            HTTPResponse(
                status: 200,
                body: .stream { writer in
                    while (try? await writer.write([UInt8](repeating: 1, count: 4096))) != nil {
                        written.withLock { $0 += 4096 }
                    }
                })
        }
        try await withServer([route]) { server in
            try await onThread {
                let client = try RawClient(server.port, receiveBuffer: 4096)
                try client.request("GET", "/x")
                #expect(blockingUntil { written.read() > 0 }, "it begins")
                let kept = settledValue(for: 500) { written.read() }
                #expect(kept < 256 * 1024, "\(kept) bytes")
            }
        }
    }
}
