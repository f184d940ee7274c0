import CCurl
import Core
import Formats
import Glibc

/// The translation of a request into libcurl options, and of callback contexts into exchanges.
extension Exchange {
    /// Sets all options on a fresh handle. Throws for invalid values of the request.
    ///
    /// - Parameter avoidsHTTP2: Whether the origin sent ENHANCE_YOUR_CALM.
    func configure(_ running: Running, avoidsHTTP2: Bool) throws(CurlError) {
        let easy = running.easy
        try setCommon(easy)
        try setTransport(easy, avoidsHTTP2)
        try setTLS(easy)
        try setProxy(easy)
        try setMethod(easy, running.sending.body)
        try setAuthentication(
            easy, request.httpAuthentication, CURLOPT_HTTPAUTH, CURLOPT_USERNAME, CURLOPT_PASSWORD)
        try setCookies(running)
        let context = Unmanaged.passUnretained(running).toOpaque()
        easy.set(CURLOPT_HEADERFUNCTION, function: headerArrived)
        easy.set(CURLOPT_HEADERDATA, context)
        easy.set(CURLOPT_WRITEFUNCTION, function: bodyArrived)
        easy.set(CURLOPT_WRITEDATA, context)
        if running.sending.body != nil {
            easy.set(CURLOPT_READFUNCTION, function: bodyWanted)
            easy.set(CURLOPT_READDATA, context)
            easy.set(seek: bodyRewound)
            easy.set(CURLOPT_SEEKDATA, context)
        }
    }

    /// Connects to the same server without verification and without a request, to read its key. The handshake may fail
    /// after the key was received: with TLS 1.2 a server that requires a client certificate ends it.
    func configureProbe(_ easy: Easy, avoidsHTTP2: Bool) throws(CurlError) {
        try setCommon(easy)
        try setTransport(easy, avoidsHTTP2)
        try setProxy(easy)
        easy.set(CURLOPT_CONNECT_ONLY, 1)
        easy.set(CURLOPT_FRESH_CONNECT, 1)
        // The handshake of a resumed session has no certificate.
        easy.set(CURLOPT_SSL_SESSIONID_CACHE, 0)
        easy.set(beforeHandshake: handshakeBegins)
        easy.set(CURLOPT_SSL_VERIFYPEER, 0)
        easy.set(CURLOPT_SSL_VERIFYHOST, 0)
        easy.set(CURLOPT_TIMEOUT_MS, 10_000)
    }

    private func setCommon(_ easy: Easy) throws(CurlError) {
        try easy.set(CURLOPT_URL, url.text)
        easy.set(CURLOPT_NOSIGNAL, 1)
        try easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
        easy.set(CURLOPT_FOLLOWLOCATION, 0)
        easy.set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
        easy.set(CURLOPT_HTTP_CONTENT_DECODING, 0)
        easy.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, wantsTunnel ? 0 : 1)
        easy.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        // Small buffers for low bandwidth limits, large ones otherwise to save calls.
        let isLimited = (request.bandwidthLimit ?? .max) < 1 << 20
        if request.sink.isFile, !isLimited { easy.prefer(CURLOPT_BUFFERSIZE, 64 * 1024) }
        if isLimited { easy.prefer(CURLOPT_UPLOAD_BUFFERSIZE, 16 * 1024) }
    }

    /// Whether the request needs a tunnel through the proxy (CONNECT).
    var wantsTunnel: Bool {
        guard let proxy = request.proxy, url.isSecure else { return false }
        return proxy.kind == .http || proxy.kind == .https
    }

    private func setTransport(_ easy: Easy, _ avoidsHTTP2: Bool) throws(CurlError) {
        easy.set(CURLOPT_CONNECTTIMEOUT_MS, Int(clamping: max(1, request.connectTimeout.milliseconds)))
        easy.set(CURLOPT_TCP_KEEPALIVE, 1)
        easy.set(CURLOPT_MAXAGE_CONN, 60)
        easy.set(CURLOPT_MAXLIFETIME_CONN, 3600)
        let mayBeHTTP2 = url.isSecure && !avoidsHTTP2
        easy.set(CURLOPT_HTTP_VERSION, mayBeHTTP2 ? Int(CURL_HTTP_VERSION_2TLS) : Int(CURL_HTTP_VERSION_1_1))
        if request.usesFreshConnection { easy.set(CURLOPT_FRESH_CONNECT, 1) }
        easy.set(CURLOPT_RESOLVE, list: pins)
        let context = Unmanaged.passUnretained(self).toOpaque()
        easy.set(CURLOPT_PRIVATE, context)
        easy.set(openSocket: socketWanted)
        easy.set(CURLOPT_OPENSOCKETDATA, context)
        easy.set(beforeRequest: requestBegins)
        easy.set(CURLOPT_PREREQDATA, context)
    }

    private func setTLS(_ easy: Easy) throws(CurlError) {
        guard url.isSecure else { return }
        let tls = request.tls
        let version = tls.minimumVersion == .tls13 ? CURL_SSLVERSION_TLSv1_3 : CURL_SSLVERSION_TLSv1_2
        easy.set(CURLOPT_SSLVERSION, Int(version))
        try setRoots(easy)
        var pins = tls.pinnedPublicKeys
        if let key = tls.trustedServerKey {
            // The key replaces the certificate and the name. A callback would allow the pool to share the connection.
            easy.set(CURLOPT_SSL_VERIFYPEER, 0)
            easy.set(CURLOPT_SSL_VERIFYHOST, 0)
            pins = pins.isEmpty || pins.contains(key) ? [key] : ["sha256/"]
        }
        if !pins.isEmpty {
            try easy.set(
                CURLOPT_PINNEDPUBLICKEY, pins.map { "sha256//" + $0.dropFirst("sha256/".count) }.joined(separator: ";"))
        }
        guard let certificate = tls.clientCertificate else { return }
        try easy.set(CURLOPT_SSLCERTTYPE, "PEM")
        try easy.set(CURLOPT_SSLCERT_BLOB, blob: certificate.certificates)
        try easy.set(CURLOPT_SSLKEYTYPE, "PEM")
        try easy.set(CURLOPT_SSLKEY_BLOB, blob: certificate.key)
    }

    private func setRoots(_ easy: Easy) throws(CurlError) {
        guard let file = request.tls.caFile else { return }
        try easy.set(CURLOPT_CAINFO, file)
        easy.set(CURLOPT_CAPATH, nil as UnsafeMutableRawPointer?)
        try easy.set(CURLOPT_PROXY_CAINFO, file)
        easy.set(CURLOPT_PROXY_CAPATH, nil as UnsafeMutableRawPointer?)
    }

    private func setProxy(_ easy: Easy) throws(CurlError) {
        guard let proxy = request.proxy else {
            // Ignores the environment's proxies and exceptions.
            try easy.set(CURLOPT_PROXY, "")
            return try easy.set(CURLOPT_NOPROXY, "*")
        }
        let type =
            switch proxy.kind {
            case .http: CURLPROXY_HTTP
            case .https: CURLPROXY_HTTPS
            case .socks5: CURLPROXY_SOCKS5
            case .socks5h: CURLPROXY_SOCKS5_HOSTNAME
            }
        try easy.set(CURLOPT_PROXY, proxy.host.bracketed)
        easy.set(CURLOPT_PROXYTYPE, Int(type.rawValue))
        easy.set(CURLOPT_PROXYPORT, Int(proxy.port))
        try easy.set(CURLOPT_NOPROXY, "")
        try setAuthentication(
            easy, proxy.authentication, CURLOPT_PROXYAUTH, CURLOPT_PROXYUSERNAME, CURLOPT_PROXYPASSWORD)
    }

    private func setAuthentication(
        _ easy: Easy, _ authentication: HTTPAuthentication?, _ scheme: CURLoption, _ user: CURLoption,
        _ password: CURLoption
    ) throws(CurlError) {
        guard let authentication else { return }
        // libcurl arms a single wanted scheme before any challenge. Until it has a nonce it sends requests with a body
        // of 0 bytes, and 7.88 leaves that state on the connection for other requests. With two wanted schemes it arms
        // none before the server has named one. Bearer is never chosen, because there is no token.
        let digest = 2 /* CURLAUTH_DIGEST */ | 64 /* CURLAUTH_BEARER */
        easy.set(scheme, authentication.isDigest ? digest : 1 /* CURLAUTH_BASIC */)
        try easy.set(user, authentication.user)
        try easy.set(password, authentication.password)
    }

    /// Enables libcurl's cookie engine. Cookies that must not be sent are added with the first line of the response, so
    /// that the engine can determine which of them the response deletes.
    private func setCookies(_ running: Running) throws(CurlError) {
        guard let cookies = request.cookies else { return }
        try running.easy.set(CURLOPT_COOKIEFILE, "")
        if request.sendsCookies { running.easy.add(cookies: cookies) } else { running.lateCookies = cookies }
    }

    private func setMethod(_ easy: Easy, _ body: BodySource?) throws(CurlError) {
        let method = request.method
        // A long body that a challenge might require twice waits up to a second for the challenge.
        let awaitsChallenge = request.mayBeChallenged && body?.length ?? 0 >= 1 << 20
        var suppressed = awaitsChallenge ? ["Accept"] : ["Expect", "Accept"]
        if let body {
            easy.set(CURLOPT_UPLOAD, 1)
            easy.set(CURLOPT_INFILESIZE_LARGE, offset: body.length)
            try easy.set(CURLOPT_CUSTOMREQUEST, method)
        } else if method == "HEAD" {
            easy.set(CURLOPT_NOBODY, 1)
        } else if ["POST", "PUT", "PATCH"].contains(method) {
            // A request with a method that expects content declares an empty body (RFC 9110 section 8.6).
            easy.set(CURLOPT_POST, 1)
            easy.set(CURLOPT_POSTFIELDSIZE_LARGE, offset: 0)
            try easy.set(CURLOPT_POSTFIELDS, "")
            try easy.set(CURLOPT_CUSTOMREQUEST, method)
            suppressed.append("Content-Type")
        } else {
            easy.set(CURLOPT_HTTPGET, 1)
            if method != "GET" { try easy.set(CURLOPT_CUSTOMREQUEST, method) }
        }
        var lines = suppressed.filter { $0 == "Expect" || !request.headers.contains($0) }.map { "\($0):" }
        for field in request.headers.fields where !Self.own.contains(field.name.asciiLowercased) {
            lines.append(field.value.isEmpty ? "\(field.name);" : "\(field.name): \(field.value)")
        }
        easy.set(CURLOPT_HTTPHEADER, list: lines)
    }

    /// Fields derived from the request and its body, not set by the caller.
    private static let own: Set<String> = ["content-length", "transfer-encoding", "expect"]

    /// Whether method and header fields are valid in a request and cannot change its framing.
    static func isSendable(_ request: ExchangeRequest) -> Bool {
        func isToken(_ text: String) -> Bool { !text.isEmpty && text.utf8.allSatisfy(Bytes.isToken) }
        guard isToken(request.method), request.method != "CONNECT" else { return false }
        return request.headers.fields.allSatisfy { field in
            isToken(field.name) && field.value.utf8.allSatisfy { $0 != 0 && $0 != 0x0A && $0 != 0x0D }
        }
    }
}

// MARK: - Callbacks

private func exchange(_ context: UnsafeMutableRawPointer?) -> Exchange? {
    context.map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
}

private func running(_ context: UnsafeMutableRawPointer?) -> Exchange.Running? {
    context.map { Unmanaged.fromOpaque($0).takeUnretainedValue() }
}

private func headerArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    let isTaken = running(context)?.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? false
    return isTaken ? size * count : Int(CURL_WRITEFUNC_ERROR)
}

private func bodyArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    switch running(context)?.take(UnsafeRawBufferPointer(start: bytes, count: size * count)) {
    case .all: size * count
    case .pause: Int(CURL_WRITEFUNC_PAUSE)
    case .end, nil: Int(CURL_WRITEFUNC_ERROR)
    }
}

private func bodyWanted(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    let buffer = UnsafeMutableRawBufferPointer(start: bytes, count: size * count)
    switch running(context)?.give(buffer) {
    case .bytes(let count): return count
    case .pause: return Int(CURL_READFUNC_PAUSE)
    case .failed, nil: return Int(CURL_READFUNC_ABORT)
    }
}

private func bodyRewound(_ context: UnsafeMutableRawPointer?, _ offset: curl_off_t, _ origin: Int32) -> Int32 {
    guard origin == SEEK_SET, let body = running(context)?.sending.body, body.seek(to: Int64(offset)) else {
        return CURL_SEEKFUNC_FAIL
    }
    return CURL_SEEKFUNC_OK
}

private func socketWanted(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address, let pointer = ccurl_address(address), let (peer, port) = SocketAddress.read(pointer),
        exchange(context)?.mayConnect(to: peer, port: port) ?? false
    else { return -1 }
    let wanted = address.pointee
    let descriptor = socket(wanted.family, wanted.socktype | Int32(SOCK_CLOEXEC.rawValue), wanted.protocol)
    if exchange(context)?.sink.isInParts ?? false { boundReceiveBuffer(of: descriptor) }
    return descriptor
}

/// Limits the kernel to 2 MiB of received bytes while a part is stored, because they are lost with the process. A
/// window clamp would not suffice: the kernel raises it when it enlarges the buffer.
private func boundReceiveBuffer(of descriptor: Int32) {
    if mayBoundReceiveBuffers { setReceiveBuffer(of: descriptor) }
}

/// Whether `net.core.rmem_max` allows a buffer of this size. A smaller one would slow down distant origins.
private let mayBoundReceiveBuffers: Bool = {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    setReceiveBuffer(of: descriptor)
    var (size, length) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
    return getsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, &length) == 0 && size >= 2 << 20
}()

private func setReceiveBuffer(of descriptor: Int32) {
    // The kernel doubles it (socket(7)).
    var half: Int32 = 1 << 20
    _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &half, socklen_t(MemoryLayout<Int32>.size))
}

private func requestBegins(
    _ context: UnsafeMutableRawPointer?, _ remote: UnsafeMutablePointer<CChar>?, _ local: UnsafeMutablePointer<CChar>?,
    _ remotePort: Int32, _ localPort: Int32
) -> Int32 {
    guard let remote, let port = UInt16(exactly: remotePort),
        exchange(context)?.beforeRequest(remote: String(cString: remote), port: port) ?? false
    else { return CURL_PREREQFUNC_ABORT }
    return CURL_PREREQFUNC_OK
}

/// Called for the handshake of a probe, with the unverified server or with a verified proxy before it.
private func handshakeBegins(
    _ easy: UnsafeMutableRawPointer?, _ settings: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> CURLcode {
    if let easy, let settings, let probed = Exchange.of(easy) {
        let context = Unmanaged.passUnretained(probed).toOpaque()
        OpenSSL.shared?.judgeCertificates(of: settings, by: certificateArrived, context)
    }
    return CURLE_OK
}

private func certificateArrived(
    _ verification: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    if let verification, let pin = OpenSSL.shared?.pin(in: verification) {
        exchange(context)?.learn(serverPublicKey: pin)
    }
    return 1
}
