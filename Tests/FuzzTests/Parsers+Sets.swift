import Formats
import Glibc

@testable import Core
@testable import TransferEngine

private let commit = String(repeating: "0a", count: 20)

/// A source of each kind, and for the hub's second kind of document an expansion whose commit is known.
private let expansions: [(source: SetSource, hasCommit: Bool)] = {
    let hub = SetSource { ($0.repository, $0.endpoint, $0.ignore) = ("o/n", "https://hub.example", ["x*"]) }
    let checksums = SetSource { ($0.kind, $0.url) = (.checksums, "https://hub.example/a/SUMS?b") }
    let manifest = SetSource { ($0.kind, $0.url) = (.manifest, "https://hub.example/") }
    return [(hub, false), (hub, true), (checksums, false), (manifest, false)]
}()

/// A document of a source, after a line with the `Link` field of its response: the files lie within the version, at
/// URLs that tasks accept, and the next document has the origin of the source.
func checkExpansion(_ bytes: [UInt8]) throws {
    guard let ((source, hasCommit), rest) = choose(expansions, by: bytes) else { return }
    let parts = rest.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    var expansion = SetExpansion(of: source)
    if hasCommit { _ = try expansion.take(Array(#"{"sha":"\#(commit)"}"#.utf8), HTTPFields(), from: "", for: source) }
    let (before, url) = (expansion, expansion.next ?? "")
    let headers = HTTPFields([HTTPField(name: "Link", value: text(Array(parts[0])))])
    let document = Array(parts.dropFirst().first ?? [])
    guard let files = try? expansion.take(document, headers, from: url, for: source) else {
        return try hold(expansion == before, "a refused document changes the expansion")
    }
    try hold(SetExpansion.inOrder(expansion.bytesAtRest) == expansion, "an expansion changes at rest")
    if let next = expansion.next, let url = try? ParsedURL(next) {
        try hold(url.origin == "https://hub.example:443", "\(next) follows")
    }
    for file in files {
        try hold(TextRule.setPath.violation(in: file.path) == nil, "the path \(file.path)")
        try hold(TextRule.url.violation(in: file.request.url) == nil, "the URL \(file.request.url)")
        try hold(SetFile.inOrder(file.bytesAtRest) == file, "a file changes at rest")
        guard let digest = file.expectedDigest else { continue }
        try hold(SetDigest(digest.algorithm, hexadecimal: digest.value) == digest, "the digest \(digest.value)")
    }
    try hold(files.allSatisfy { $0.length ?? 0 >= 0 }, "a negative length")
}

/// A pattern and a path in two lines. glibc is the reference for patterns without sets, which it reads differently.
func checkGlob(_ bytes: [UInt8]) throws {
    let lines = lines(bytes).map(text)
    guard lines.count == 2 else { return }
    let (pattern, path) = (lines[0].hasSuffix("/") ? lines[0] + "*" : lines[0], lines[1])
    let glob = Glob(lines[0])
    guard glob.cost * path.utf8.count < 1 << 20 else { return }
    let matches = glob.matches(path)
    guard bytes.count < 64, bytes.allSatisfy({ (1..<0x80).contains($0) && $0 != UInt8(ascii: "[") }) else { return }
    try hold(matches == (fnmatch(pattern, path, FNM_NOESCAPE) == 0), "\(pattern) and \(path)")
}
