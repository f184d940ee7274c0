/// The directives of `Cache-Control` that matter to a private cache (RFC 9111 section 5.2).
package struct CacheControl: Hashable, Sendable {
    /// Seconds.
    package private(set) var maxAge: Int64?
    package private(set) var minFresh: Int64?
    package private(set) var noCache = false
    package private(set) var noStore = false

    /// The directives of all lines of the field. Names are compared ignoring case, and unknown directives are ignored.
    ///
    /// A `max-age` that is no number counts as 0, and of several ones the smallest counts, because a response with
    /// invalid freshness is stale (section 4.2.1).
    package init(_ fields: HTTPFields) {
        for line in fields.values("Cache-Control") {
            var scanner = ByteScanner(line)
            while !scanner.isAtEnd { read(&scanner) }
        }
        if !fields.contains("Cache-Control"),
            fields.values("Pragma").contains(where: { $0.asciiLowercased.contains("no-cache") })
        {
            noCache = true
        }
    }

    private mutating func read(_ scanner: inout ByteScanner) {
        _ = scanner.take { $0.isBlank || $0 == UInt8(ascii: ",") }
        guard let name = scanner.token()?.asciiLowercased else {
            // Not a directive: the rest up to the next comma is ignored.
            _ = scanner.take { $0 != UInt8(ascii: ",") }
            return
        }
        var argument: [UInt8]?
        if scanner.skip("=") {
            argument =
                scanner.peek == UInt8(ascii: "\"")
                ? scanner.quotedBytes() ?? [] : Array(scanner.take(while: \.isTokenCharacter))
        }
        switch name {
        case "max-age": maxAge = min(Self.seconds(argument), maxAge ?? .max)
        case "min-fresh": minFresh = Self.seconds(argument)
        // With field names it restricts these fields only, which a cache may treat like the form without.
        case "no-cache": noCache = true
        case "no-store": noStore = true
        default: break
        }
    }

    /// The largest number of seconds that counts (RFC 9111 section 1.2.2).
    private static let longest: Int64 = 1 << 31

    static func seconds(_ argument: [UInt8]?) -> Int64 {
        guard let argument, !argument.isEmpty, argument.allSatisfy(\.isDigit) else { return 0 }
        return min(Int64(String(decoding: argument, as: UTF8.self)) ?? longest, longest)
    }
}
