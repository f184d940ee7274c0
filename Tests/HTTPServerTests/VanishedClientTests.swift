import Glibc
import HTTPServer
import TestSupport
import Testing

/// Clients whose machine or network fails, so that they send no FIN. No network fails here, so these tests
/// read the options by which the kernel notices one.
struct VanishedClientTests {
    @Test func `The kernel probes silent clients, and ends a response after its limit of silence`() async throws {
        let whole = Route("GET", "/whole") { _ in text("abc") }
        let stream = Route("GET", "/stream") { request in
            var response = HTTPResponse(
                status: 200,
                body: .stream { writer in
                    try await writer.write(Array("abc".utf8))
                    await request.clientGone.wait()
                })
            response.silenceLimit = .seconds(10)
            return response
        }
        try await withServer([whole, stream]) { server in
            try await onThread {
                for (path, timeout) in [("/whole", 0), ("/stream", 10_000)] as [(String, Int32)] {
                    let client = try RawClient(server.port)
                    try client.request("GET", path)
                    try client.read(until: "abc")
                    let accepted = try #require(Self.accepted(client, by: server))
                    #expect(Self.option(accepted, SOL_SOCKET, SO_KEEPALIVE) == 1)
                    let times = [TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT].map {
                        Self.option(accepted, Int32(IPPROTO_TCP), $0)
                    }
                    #expect(times == [5, 2, 3, timeout], "\(path)")
                }
            }
        }
    }

    /// The server's descriptor of the client's connection, which is in this process.
    private static func accepted(_ client: RawClient, by server: HTTPServer) -> Int32? {
        let own = port(of: client.descriptor, isPeer: false)
        return (0..<Int32(4096)).first { descriptor in
            port(of: descriptor, isPeer: false) == server.port && port(of: descriptor, isPeer: true) == own
        }
    }

    private static func port(of descriptor: Int32, isPeer: Bool) -> UInt16? {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutableBytes(of: &address) { bytes -> Int32 in
            guard let start = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self) else { return -1 }
            return isPeer ? getpeername(descriptor, start, &length) : getsockname(descriptor, start, &length)
        }
        guard code == 0, address.sin_family == sa_family_t(AF_INET) else { return nil }
        return UInt16(bigEndian: address.sin_port)
    }

    private static func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = getsockopt(descriptor, level, name, &value, &length)
        return value
    }
}
