import Formats

/// A list of checksums as coreutils, BSD's programs and OpenSSL write them.
enum ChecksumList {
    static func files(in document: [UInt8], of source: SetSource) throws(SetExpansionError) -> [SetFile] {
        guard let list = source.url.flatMap(URLParts.init), let base = URLParts(source.base ?? source.url ?? "") else {
            throw SetExpansionError("The source has no usable URL.")
        }
        // The paths of an own base are below it, with or without a slash at its end.
        let hasSlash = source.base == nil || base.path.utf8.last == UInt8(ascii: "/")
        let folder = base.site + (hasSlash ? base.folder : base.path + "/")
        let named = if let own = source.algorithm { own } else { try algorithm(ofListAt: list.path) }
        var files: [SetFile] = []
        for (index, line) in document.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let place = "Line \(index + 1) of the list"
            let text = line.drop(while: \.isBlank)
            guard let first = text.first, first != UInt8(ascii: "#"), text != [0x0D] else { continue }
            guard let entry = Entry(text.last == 0x0D ? text.dropLast() : text) else {
                throw SetExpansionError("\(place) is no line of a list of checksums.")
            }
            let own = entry.tag.flatMap { tags[$0] }
            // Lists with tags may have several digests of each file.
            if entry.tag != nil, let wanted = source.algorithm, own != wanted { continue }
            let algorithm = entry.tag == nil ? named ?? lengths[entry.digest.utf8.count / 2] : own
            guard let digest = algorithm.flatMap({ SetDigest($0, hexadecimal: entry.digest) }) else {
                throw SetExpansionError("\(place) has no digest in SHA-256, SHA-512 or MD5, or one of another length.")
            }
            let url = folder + PercentCoding.encode(path: entry.path)
            let file = try SetFile(listing: entry.path, at: url, digest, length: nil, as: place)
            // A shell creates the list before `sha256sum *` reads the names.
            guard url != list.site + list.path else { continue }
            files.append(file)
            guard files.count <= SetExpansion.mostFiles else { throw .tooManyFiles }
        }
        return files
    }

    private static let tags: [String: SetDigestAlgorithm] = [
        "sha256": .sha256, "sha2-256": .sha256, "sha512": .sha512, "sha2-512": .sha512, "md5": .md5,
    ]
    private static let lengths = Dictionary(
        uniqueKeysWithValues: [.sha256, .sha512, .md5].map { (algorithm: SetDigestAlgorithm) in
            (algorithm.length, algorithm)
        })

    /// Words in the names of lists. Those without an algorithm have digests as long as those of others.
    private static let words: [(word: String, algorithm: SetDigestAlgorithm?)] = [
        ("sha256", .sha256), ("sha512", .sha512), ("md5", .md5), ("sha3", nil), ("blake", nil), ("b2sum", nil),
    ]

    /// The algorithm that the name of a list states; `nil` if it states none, or several.
    private static func algorithm(ofListAt path: String) throws(SetExpansionError) -> SetDigestAlgorithm? {
        let last = path.utf8.split(separator: UInt8(ascii: "/")).last ?? ""[...].utf8
        let name = String(decoding: last.map(\.asciiLowercased).filter { !"-_".utf8.contains($0) }, as: UTF8.self)
        let found = words.filter { name.contains($0.word) }
        guard let only = found.first, found.count == 1 else { return nil }
        guard let algorithm = only.algorithm else {
            throw SetExpansionError("By its name, the list has digests that are not in SHA-256, SHA-512 or MD5.")
        }
        return algorithm
    }
}

/// A line of a list.
private struct Entry {
    /// The name of the algorithm in lower case, if the line has one.
    let tag: String?
    let digest: String
    let path: String

    /// - Parameter text: The line without blanks before it, and without its end.
    init?(_ text: ArraySlice<UInt8>) {
        let isEscaped = text.first == UInt8(ascii: "\\")
        let text = isEscaped ? text.dropFirst() : text
        let digits = text.prefix { $0.hexadecimalValue != nil }
        var name: ArraySlice<UInt8>
        if !digits.isEmpty, let blank = text.dropFirst(digits.count).first, blank.isBlank {
            tag = nil
            digest = String(decoding: digits, as: UTF8.self)
            name = text.dropFirst(digits.count + 1)
            // The mark of text or binary mode. BSD's `-r` writes none.
            if let mark = name.first, mark == UInt8(ascii: " ") || mark == UInt8(ascii: "*") { name = name.dropFirst() }
        } else {
            guard let open = text.firstIndex(of: UInt8(ascii: "(")), let end = text.lastIndex(of: UInt8(ascii: ")")),
                open < end
            else { return nil }
            let rest = text[(end + 1)...].filter { !$0.isBlank }
            guard rest.first == UInt8(ascii: "=") else { return nil }
            tag = String(decoding: text[..<open], as: UTF8.self).trimmed.asciiLowercased
            digest = String(decoding: rest.dropFirst(), as: UTF8.self)
            name = text[(open + 1)..<end]
        }
        if isEscaped {
            guard let unescaped = Self.unescaped(name) else { return nil }
            name = unescaped[...]
        }
        while name.starts(with: [0x2E, 0x2F]) { name = name.dropFirst(2) }
        guard let path = String(validating: name, as: UTF8.self) else { return nil }
        self.path = path
    }

    private static func unescaped(_ name: ArraySlice<UInt8>) -> [UInt8]? {
        var (result, rest) = ([UInt8](), name)
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "\\") else {
                result.append(byte)
                continue
            }
            switch rest.popFirst() {
            case UInt8(ascii: "\\"): result.append(UInt8(ascii: "\\"))
            case UInt8(ascii: "n"): result.append(0x0A)
            case UInt8(ascii: "r"): result.append(0x0D)
            default: return nil
            }
        }
        return result
    }
}
