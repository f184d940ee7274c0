import Formats

@testable import API
@testable import HTTPServer

/// A request's head, one line for the request and one for each field: the framing is the one that the fields declare, and a
/// decoded target means the same when it is encoded again.
func checkRequest(_ bytes: [UInt8]) throws {
    var lines = lines(bytes).map(text)
    let words = lines.removeFirst().split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(
        String.init)
    guard words.count == 3 else { return }
    let fields = lines.map { line in
        let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        return (name: String(parts[0]), value: parts.count == 2 ? parts[1].trimmed : "")
    }
    let head = RequestHead(
        method: words[0], target: words[1], version: words[2], fields: fields, size: bytes.count, isPlain: true)
    try checkFraming(of: head)
    try checkTarget(head.target)
    let id = head.requestID
    try hold((1...128).contains(id.utf8.count) && id.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "the identifier \(id)")
}

private func checkFraming(of head: RequestHead) throws {
    guard let framing = try? head.framing(ServerLimits()) else { return }
    let headers = RequestHeaders(head.fields)
    let lengths = headers.all("Content-Length")
    let codings = headers.all("Transfer-Encoding")
    switch framing {
    case .none: try hold(lengths.isEmpty && codings.isEmpty, "a declared body is none")
    case .length(let length):
        try hold(codings.isEmpty && lengths.count == 1, "a length beside another framing")
        let digits = lengths[0].drop { $0 == "0" }
        try hold("\(length)" == (digits.isEmpty ? "0" : digits), "the length \(length) of \(lengths[0])")
    case .chunked:
        try hold(lengths.isEmpty && codings.count == 1 && head.version == "HTTP/1.1", "chunks beside another framing")
    }
}

private func checkTarget(_ raw: String) throws {
    guard let target = try? RequestTarget(raw) else { return }
    func encoded(_ text: String) -> String { PercentCoding.encode(text, keeping: PercentCoding.isUnreserved) }
    let path = "/" + target.segments.map(encoded).joined(separator: "/")
    let query = target.query.map { "\(encoded($0.name))=\(encoded($0.value))" }.joined(separator: "&")
    let again = try RequestTarget(path + "?" + query)
    try hold(target.segments.map { Array($0.utf8) } == again.segments.map { Array($0.utf8) }, "the path \(path)")
    try hold(target.query.elementsEqual(again.query) { $0 == $1 }, "the query \(query)")
    let isClean = (target.segments + target.query.flatMap { [$0.name, $0.value] }).allSatisfy { !$0.utf8.contains(0) }
    try hold(isClean, "a NUL in \(raw)")
}

/// Content negotiation: only what is offered is chosen.
func checkAccept(_ bytes: [UInt8]) throws {
    let values = lines(bytes).map(text)
    let offered = [MediaTypes.json, MediaTypes.eventStream]
    let chosen = MediaTypes.choose(offered, accept: values)
    try hold(chosen.map(offered.contains) != false, "\(chosen ?? "") was not offered")
    let trimmed = values[0].trimmed
    try hold(trimmed.trimmed == trimmed, "a trimmed text can be trimmed")
    if let type = MediaTypes.ofBody(values[0]) { try hold(type == type.lowercased(), "\(type) is not in lower case") }
}

/// Lines of JSON: they are the same however they arrive, and none is longer than the limit.
func checkLines(_ bytes: [UInt8]) throws {
    let limit = 64
    func read(_ size: Int) -> [(number: Int, bytes: [UInt8]?)] {
        var splitter = LineSplitter(limit: limit)
        var found: [LineSplitter.Line] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            found += splitter.take(Array(bytes[start..<min(start + size, bytes.count)]))
        }
        return (found + [splitter.finish()].compactMap(\.self)).map { ($0.number, $0.bytes) }
    }
    var wanted: [(number: Int, bytes: [UInt8]?)] = []
    for (index, line) in lines(bytes).enumerated() {
        let isBlank = line.allSatisfy { [0x20, 0x09, 0x0D].contains($0) }
        if line.count > limit { wanted.append((index + 1, nil)) } else if !isBlank { wanted.append((index + 1, line)) }
    }
    for size in [1 + bytes.count / 4096, 7, 4096] {
        try hold(read(size).elementsEqual(wanted) { $0 == $1 }, "in pieces of \(size)")
    }
}
