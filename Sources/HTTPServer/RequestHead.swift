import Formats

/// A request's head as received, before validation.
struct RequestHead: Sendable {
    var method: String
    var target: String
    var version: String
    var fields: [(name: String, value: String)]
    /// The size of the whole head.
    var size: Int
    /// Whether every line ended in CRLF and was stored in one piece: no bare LF, no NUL, no folded line.
    var isPlain: Bool

    /// The framing of the body. Throws if the head is invalid.
    ///
    /// libmicrohttpd 0.9.75 reads on after each of these forms, and the following bytes would be executed as a second,
    /// hidden request. The connection therefore closes. Sources: RFC 9112, sections 5.1, 6.1, 6.3, 3.2 and 11.2.
    func framing(_ limits: ServerLimits) throws(RefusalReason) -> BodyFraming {
        guard target.utf8.count <= limits.targetBytes else { throw .targetTooLong }
        guard size <= limits.headBytes else { throw .headTooLarge }
        guard isPlain else { throw .badFraming("the head has a bare LF, a NUL or a folded line") }
        guard version == "HTTP/1.1" || version == "HTTP/1.0" else { throw .badFraming("unknown HTTP version") }
        guard !method.isEmpty, method.utf8.allSatisfy(Bytes.isToken) else { throw .badFraming("bad method") }

        var hosts = 0
        var lengths: [String] = []
        var codings: [String] = []
        for field in fields {
            guard !field.name.isEmpty, field.name.utf8.allSatisfy(Bytes.isToken) else {
                throw .badFraming("a field name is no token")
            }
            guard field.value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
                throw .badFraming("a field value has a control byte")
            }
            switch field.name.utf8.count {
            case 4 where equalIgnoringASCIICase(field.name, "Host"): hosts += 1
            case 6 where equalIgnoringASCIICase(field.name, "Expect"):
                guard equalIgnoringASCIICase(field.value, "100-continue") else { throw .expectationFailed }
            case 14 where equalIgnoringASCIICase(field.name, "Content-Length"): lengths.append(field.value)
            case 17 where equalIgnoringASCIICase(field.name, "Transfer-Encoding"): codings.append(field.value)
            default: break
            }
        }
        guard hosts == 1 || (hosts == 0 && version == "HTTP/1.0") else {
            throw .badFraming("there must be exactly one Host")
        }
        guard codings.isEmpty else {
            guard lengths.isEmpty else { throw .badFraming("Transfer-Encoding and Content-Length together") }
            guard version == "HTTP/1.1" else { throw .badFraming("Transfer-Encoding in HTTP/1.0") }
            guard codings.count == 1, equalIgnoringASCIICase(codings[0], "chunked") else {
                throw .badFraming("only the transfer coding chunked is supported")
            }
            return .chunked
        }
        guard let length = lengths.first else { return .none }
        guard lengths.count == 1, length.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let value = UInt64(length)
        else {
            throw .badFraming("bad Content-Length")
        }
        return .length(value)
    }

    /// The fields for handlers. Whitespace around a value is not part of it (RFC 9110, section 5.5); ``framing(_:)``
    /// judges the values with that whitespace, as libmicrohttpd does.
    ///
    /// - Parameter authority: The authority of a target in absolute form, which replaces `Host` (RFC 9112, section
    ///   3.2.2).
    func headers(authority: String?) -> RequestHeaders {
        var headers = fields.map { (name: $0.name, value: $0.value.trimmed) }
        if let authority {
            headers.removeAll { equalIgnoringASCIICase($0.name, "Host") }
            headers.append((name: "Host", value: authority))
        }
        return RequestHeaders(headers)
    }

    /// The client's `X-Request-Id` if it is safe in a log, otherwise a random one.
    var requestID: String {
        let given = fields.first { equalIgnoringASCIICase($0.name, "X-Request-Id") }?.value.trimmed
        if let given, (1...128).contains(given.utf8.count), given.utf8.allSatisfy(isPlainByte) { return given }
        return randomRequestID()
    }
}

func randomRequestID() -> String {
    let digits = String(UInt64.random(in: .min ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.utf8.count) + digits
}

/// `A-Za-z0-9._-`
private func isPlainByte(_ byte: UInt8) -> Bool {
    Bytes.isDigit(byte) || Bytes.isLetter(byte) || "._-".utf8.contains(byte)
}
