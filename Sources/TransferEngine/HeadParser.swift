import Core

/// Parses heads from libcurl's header lines, with the checks that libcurl does not perform.
struct HeadParser {
    enum Event: Equatable {
        /// 1xx, except 101.
        case informational(ResponseHead)
        case final(ResponseHead)
    }

    /// The maximum of all heads and trailers of an exchange.
    static let maximumBytes = 256 * 1024

    private var head: ResponseHead?
    private var bytes = 0

    /// Parses one line with its end. Lines after a final head that do not begin another head are trailers, and dropped.
    mutating func take(_ line: UnsafeRawBufferPointer) throws(Refused) -> Event? {
        bytes += line.count
        guard bytes <= Self.maximumBytes else { throw Refused(fault: .headersTooLarge) }
        var end = line.count
        while end > 0, line[end - 1] == 0x0A || line[end - 1] == 0x0D { end -= 1 }
        let text = UnsafeRawBufferPointer(rebasing: line[..<end])
        if text.starts(with: "HTTP/".utf8), head == nil || !text.contains(UInt8(ascii: ":")) {
            head = try Self.statusLine(text)
            return nil
        }
        guard head != nil else { return nil }
        if text.isEmpty { return complete() }
        try field(text)
        return nil
    }

    private mutating func complete() -> Event? {
        guard let finished = head else { return nil }
        head = nil
        return (100...199).contains(finished.status) && finished.status != 101
            ? .informational(finished) : .final(finished)
    }

    private static func statusLine(_ text: UnsafeRawBufferPointer) throws(Refused) -> ResponseHead {
        let parts = text.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, parts[1].count == 3, let status = Int(string(parts[1])), status >= 100 else {
            throw Refused(fault: .unparsableResponse)
        }
        return ResponseHead(status: status, fields: HTTPFields(), httpVersion: string(parts[0].dropFirst(5)))
    }

    private mutating func field(_ text: UnsafeRawBufferPointer) throws(Refused) {
        if text[0] == 0x20 || text[0] == 0x09 {
            // A folded line continues the previous field (RFC 9112 section 5.2).
            guard let last = head?.fields.fields.indices.last else { throw Refused(fault: .unparsableResponse) }
            head?.fields.fields[last].value += " " + Self.string(Self.trimmed(text[...]))
            return
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")), colon > 0 else {
            throw Refused(fault: .unparsableResponse)
        }
        head?.fields.append(Self.string(text[..<colon]), Self.string(Self.trimmed(text[(colon + 1)...])))
    }

    private static func trimmed(_ bytes: Slice<UnsafeRawBufferPointer>) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes
        while let first = bytes.first, first == 0x20 || first == 0x09 { bytes = bytes.dropFirst() }
        while let last = bytes.last, last == 0x20 || last == 0x09 { bytes = bytes.dropLast() }
        return bytes
    }

    /// UTF-8 if valid, otherwise each byte as the character of that number, so that nothing is lost.
    private static func string(_ bytes: Slice<UnsafeRawBufferPointer>) -> String {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        for byte in bytes { text.append(Unicode.Scalar(byte)) }
        return String(text)
    }

    struct Refused: Error, Equatable { let fault: TransferFault }
}

extension ResponseHead {
    /// Whether the body is chunked. Throws for other transfer codings: no `TE` field requested them, and libcurl would
    /// decode them without reporting truncation (RFC 9112 section 6.1).
    func isChunked() throws(HeadParser.Refused) -> Bool {
        var codings: [String] = []
        for line in fields.values("Transfer-Encoding") {
            for part in line.utf8.split(separator: UInt8(ascii: ",")) {
                let coding = String(Substring(part)).asciiLowercased.filter { $0 != " " && $0 != "\t" }
                if !coding.isEmpty, coding != "identity" { codings.append(coding) }
            }
        }
        guard codings.isEmpty || codings == ["chunked"] else { throw HeadParser.Refused(fault: .unparsableResponse) }
        return !codings.isEmpty
    }

    /// The announced length of the body. Throws unless it is one number of at most 18 digits (RFC 9110 section 8.6).
    func contentLength() throws(HeadParser.Refused) -> Int64? {
        var length: Int64?
        for line in fields.values("Content-Length") {
            for part in line.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
                let digits = part.drop { $0 == 0x20 || $0 == 0x09 }.prefix { (0x30...0x39).contains($0) }
                let rest = part[digits.endIndex...].drop { $0 == 0x20 || $0 == 0x09 }
                guard (1...18).contains(digits.count), rest.isEmpty, let number = Int64(Substring(digits)) else {
                    throw HeadParser.Refused(fault: .unparsableResponse)
                }
                guard length == nil || length == number else { throw HeadParser.Refused(fault: .twoLengths) }
                length = number
            }
        }
        return length
    }
}
