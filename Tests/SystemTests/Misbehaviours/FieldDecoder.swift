/// Header fields as HTTP/2 sends them (HPACK, RFC 7541), with one connection's dynamic table.
struct FieldDecoder {
    struct Malformed: Error {}

    private var table: [(String, String)] = []
    private var input: ArraySlice<UInt8> = []

    /// The fields of one block, pseudo-fields included.
    mutating func decode(_ block: [UInt8]) throws -> [(name: String, value: String)] {
        input = block[...]
        var fields: [(name: String, value: String)] = []
        while let first = input.first {
            switch first {
            case 0x80...: fields.append(try entry(try integer(prefix: 7)))
            case 0x40..<0x80:
                let field = try literal(prefix: 6)
                table.insert(field, at: 0)
                fields.append(field)
            case 0x20..<0x40:
                // Evictions are not needed: no table here is long enough.
                if try integer(prefix: 5) == 0 { table = [] }
            default: fields.append(try literal(prefix: 4))
            }
        }
        return fields
    }

    private mutating func literal(prefix: Int) throws -> (String, String) {
        let index = try integer(prefix: prefix)
        let name = index == 0 ? try string() : try entry(index).0
        return (name, try string())
    }

    private func entry(_ index: Int) throws -> (String, String) {
        if (1...61).contains(index) { return Self.known[index - 1] }
        guard index > 61, index - 62 < table.count else { throw Malformed() }
        return table[index - 62]
    }

    private mutating func integer(prefix: Int) throws -> Int {
        guard let first = input.popFirst() else { throw Malformed() }
        let limit = (1 << prefix) - 1
        var value = Int(first) & limit
        guard value == limit else { return value }
        var shift = 0
        while let byte = input.popFirst(), shift < 28 {
            value += Int(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        throw Malformed()
    }

    private mutating func string() throws -> String {
        guard let first = input.first else { throw Malformed() }
        let length = try integer(prefix: 7)
        guard input.count >= length else { throw Malformed() }
        let bytes = Array(input.prefix(length))
        input = input.dropFirst(length)
        return String(decoding: first >= 0x80 ? try Self.expand(bytes) : bytes, as: UTF8.self)
    }

    private static func expand(_ bytes: [UInt8]) throws -> [UInt8] {
        var text: [UInt8] = []
        var (code, length) = (0, 0)
        for byte in bytes {
            for bit in (0..<8).reversed() {
                code = code << 1 | Int(byte >> UInt8(bit) & 1)
                length += 1
                if let character = characters[length]?[code] {
                    text.append(character)
                    (code, length) = (0, 0)
                }
            }
        }
        // The remaining bits are the beginning of the end mark: ones.
        guard length < 8, code == (1 << length) - 1 else { throw Malformed() }
        return text
    }

    /// The printable characters of appendix B. The code is canonical, so their lengths suffice.
    private static let characters: [Int: [Int: UInt8]] = {
        let lengths: [(Int, String)] = [
            (5, "012aceiost"), (6, " %-./3456789=A_bdfghlmnpru"), (7, ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz"),
            (8, "&*,;XZ"), (10, "!\"()?"), (11, "'+|"), (12, "#>"), (13, "\0$@[]~"), (14, "^}"), (15, "<`{"),
        ]
        var result: [Int: [Int: UInt8]] = [:]
        var (code, before) = (0, 5)
        for (length, characters) in lengths {
            code <<= length - before
            before = length
            for character in characters.utf8 {
                result[length, default: [:]][code] = character
                code += 1
            }
        }
        return result
    }()

    /// Appendix A.
    private static let known: [(String, String)] = {
        let text = """
            :authority|:method GET|:method POST|:path /|:path /index.html|:scheme http|:scheme https|:status 200\
            |:status 204|:status 206|:status 304|:status 400|:status 404|:status 500|accept-charset\
            |accept-encoding gzip, deflate|accept-language|accept-ranges|accept|access-control-allow-origin|age|allow\
            |authorization|cache-control|content-disposition|content-encoding|content-language|content-length\
            |content-location|content-range|content-type|cookie|date|etag|expect|expires|from|host|if-match\
            |if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|link|location|max-forwards\
            |proxy-authenticate|proxy-authorization|range|referer|refresh|retry-after|server|set-cookie\
            |strict-transport-security|transfer-encoding|user-agent|vary|via|www-authenticate
            """
        return text.split(separator: "|").map { entry in
            let parts = entry.split(separator: " ", maxSplits: 1)
            return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
    }()
}
