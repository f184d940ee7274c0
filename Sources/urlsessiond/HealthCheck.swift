import Glibc

/// `urlsessiond healthcheck [URL]`: for containers, which have no curl.
enum HealthCheck {
    /// Asks `/healthz`, by default where `URLSESSIOND_LISTEN` says, on loopback.
    static func run(_ arguments: [String]) -> Int32 {
        let (host, port) = arguments.last.flatMap(parse(url:)) ?? listener()
        guard let status = ask(host, port) else {
            Command.complain("urlsessiond: nobody answers on \(host):\(port)")
            return Command.Exit.failed
        }
        return status == 200 ? Command.Exit.done : Command.Exit.failed
    }

    private static func parse(url: String) -> (String, UInt16)? {
        guard url.hasPrefix("http://") else { return nil }
        let authority = url.dropFirst("http://".count).prefix { $0 != "/" }
        let parts = authority.split(separator: ":")
        guard let host = parts.first else { return nil }
        return (host == "localhost" ? "127.0.0.1" : String(host), parts.count > 1 ? UInt16(parts[1]) ?? 80 : 80)
    }

    private static func listener() -> (String, UInt16) {
        guard let listen = getenv("URLSESSIOND_LISTEN").map({ String(cString: $0) }),
            let colon = listen.lastIndex(of: ":"), let port = UInt16(listen[listen.index(after: colon)...])
        else { return ("127.0.0.1", 8080) }
        let host = String(listen[..<colon])
        return (host == "0.0.0.0" || host.hasPrefix("[") ? "127.0.0.1" : host, port)
    }

    /// The status of `GET /healthz`, or nil when there is none within three seconds.
    private static func ask(_ host: String, _ port: UInt16) -> Int? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var limit = timeval(tv_sec: 3, tv_usec: 0)
        let size = socklen_t(MemoryLayout<timeval>.size)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        guard inet_pton(AF_INET, host, &address.sin_addr) == 1 else { return nil }
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        let request = Array("GET /healthz HTTP/1.1\r\nHost: localhost:\(port)\r\nConnection: close\r\n\r\n".utf8)
        guard isConnected, send(descriptor, request, request.count, 0) == request.count else { return nil }
        var answer = [UInt8](repeating: 0, count: 12)
        guard recv(descriptor, &answer, answer.count, Int32(MSG_WAITALL)) == answer.count else { return nil }
        return Int(String(decoding: answer[9..<12], as: UTF8.self))
    }
}
