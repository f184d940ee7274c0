import Core
import Formats

@testable import Core
@testable import TransferEngine

private let now = Timestamp(milliseconds: 1_790_000_000_000)

/// An origin's response, line by line, and all readers of its fields.
func checkResponse(_ bytes: [UInt8]) throws {
    var parser = HeadParser()
    for line in lines(bytes) {
        let event = try? (line + [0x0D, 0x0A]).withUnsafeBytes { line throws(HeadParser.Refused) in
            try parser.take(line)
        }
        switch event ?? nil {
        case nil: break
        case .informational(let head), .final(let head):
            try checkFields(of: head)
            try checkLength(of: head)
            try checkResumption(head)
            try checkUpload(head)
            try checkRedirect(head)
        }
    }
}

private func checkFields(of head: ResponseHead) throws {
    try hold((100...999).contains(head.status), "the status \(head.status)")
    try hold(head.fields.fields.allSatisfy { !$0.name.isEmpty && !$0.name.utf8.contains(0x0A) }, "a name")
    let kept = head.fields.kept
    let size = kept.fields.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
    try hold(size <= 16 * 1024 && kept.fields.fields.count <= head.fields.fields.count, "\(size) bytes are kept")
    try hold(FileName.safe(FileName.suggested(url: "http://h/a?b", fields: head.fields)) != nil, "an unsafe name")
    if let wait = RetryAfter.parse(head.fields, now: now) {
        try hold(wait >= RetryAfter.shortest && wait <= RetryAfter.longest, "a wait of \(wait)")
    }
    _ = Challenge.answerable(head.fields.values("WWW-Authenticate"), withBody: false)
    _ = DigestField.parse(head.fields.values("Repr-Digest"))
}

private func checkLength(of head: ResponseHead) throws {
    _ = try? head.isChunked()
    guard let length = (try? head.contentLength()) ?? nil else { return }
    try hold(length >= 0, "the length \(length)")
    if let other = ContentLength.parse(head.fields).value { try hold(length == other, "two lengths") }
}

private func checkResumption(_ head: ResponseHead) throws {
    var point = ResumePoint.make(from: head, method: "GET", url: "http://h/", receivedAt: now) ?? ResumePoint()
    try hold(point.totalLength ?? 0 >= 0, "the total \(point.totalLength ?? 0)")
    for offset in [0, 5, Int64.max - 1] {
        point.reach(offset, digest: nil)
        let verdicts = [
            ResumeVerdict.judge(head: head, resuming: point),
            ResumeVerdict.judge(head: head, segment: offset..<(offset + 1), of: .max, point),
        ]
        for case .append(let place) in verdicts { try hold((0...offset).contains(place), "\(place) lies behind") }
    }
}

private func checkUpload(_ head: ResponseHead) throws {
    for version in ResumableUpload.Version.allCases {
        let resource = ParsedURL(text: "http://h/u", isSecure: false, host: "h", port: 80)
        var upload = ResumableUpload(version: version, length: 10)
        _ = upload.handle(informational: head, resource: resource)
        for _ in 0..<4 {
            let decision = upload.handle(answer: head, hasSentAll: true)
            try hold((0...10).contains(upload.offset), "an offset of \(upload.offset)")
            if case .move = decision { upload.move(to: resource) }
            _ = upload.fields
        }
    }
}

private func checkRedirect(_ head: ResponseHead) throws {
    guard let location = head.fields["Location"] else { return }
    let base = ParsedURL(text: "https://h:8443/a/b?c", isSecure: true, host: "h", port: 8443)
    let target = try? ParsedURL(location: location, from: base)
    let decision = Redirect.decide(head: head, method: "POST", hops: 0, task: base, current: base, target: target)
    guard case .follow(let method, let dropsBody, let dropsHeaders) = decision else { return }
    try hold(target?.isSecure == true, "a secure task is redirected to \(location)")
    try hold(dropsHeaders == (target?.origin != base.origin) && dropsBody == (method != "POST"), "what is dropped")
}

/// A part lies within its content, and is the same after it is written again.
func checkRange(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    switch ContentRange(text) {
    case nil: break
    case .part(let first, let last, let total):
        try hold(0 <= first && first <= last && last < total ?? .max, "\(first)-\(last)/\(total ?? -1)")
        let written = "bytes \(first)-\(last)/\(total.map(String.init) ?? "*")"
        try hold(ContentRange(written) == ContentRange(text), "\(written) means something else")
    case .unsatisfied(let total): try hold(ContentRange("bytes */\(total)") == ContentRange(text), "the total \(total)")
    }
    for length in [0, 1, 10, Int64.max] {
        guard case .part(let first, let last) = ByteRange.select(range: text, length: length) else { continue }
        try hold(0 <= first && first <= last && last < length, "\(first)-\(last) of \(length)")
        let written = ByteRange.select(range: "bytes=\(first)-\(last)", length: length)
        try hold(written == .part(first: first, last: last), "\(first)-\(last) means something else")
        try hold(text.utf8.allSatisfy { $0 < 0x80 && $0 != 0x2C }, "several ranges are one")
    }
    for (total, held) in [(nil, 0..<6), (10, 0..<10), (Int64.max, 3..<9)] as [(Int64?, Range<Int64>)] {
        let content = ArrivingContent(version: 1, total: total, [held])
        guard case .send(let part) = ArrivingAnswer.decide(content, range: text) else { continue }
        try hold(held.contains(part.first) && part.first < part.end ?? .max, "\(part) is not readable")
        guard let field = part.contentRange, total != nil || part.end != nil else { continue }
        guard case .part(part.first, let last, total)? = ContentRange(field) else { throw Broken(rule: field) }
        try hold(last + 1 == part.end, "\(field) is not the part")
    }
}

/// A response that the cache stores, by the fields of a response, an empty line and those of a request: it ages, and no
/// request without demands finds it fresh longer than it lives.
func checkCache(_ bytes: [UInt8]) throws {
    let blocks = lines(bytes).split(separator: [], maxSplits: 1, omittingEmptySubsequences: false).map { lines in
        HTTPFields(
            lines.map { line in
                let parts = text(line).split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                return HTTPField(name: String(parts[0]), value: parts.count == 2 ? parts[1].trimmed : "")
            })
    }
    let (fields, request) = (blocks[0], blocks.count == 2 ? blocks[1] : HTTPFields())
    let response = TaskResponse {
        $0.statusCode = 200
        $0.headers = fields
        $0.url = "http://h/"
    }
    guard
        let stored = CachedResponse(response, fields, to: request, requestedAt: now - .seconds(1), receivedAt: now)
    else { return }
    try hold(stored.lifetime >= 0 && stored.matches(request), "a lifetime of \(stored.lifetime)")
    try hold(CachedResponse.inOrder(stored.bytesAtRest) == stored, "a stored response changes at rest")
    var age: Int64 = 0
    for later in [Duration.zero, .seconds(60), .seconds(1 << 40)] {
        let then = now + later
        try hold(stored.age(at: then) >= age, "a response becomes younger")
        age = stored.age(at: then)
        try hold(age >= later.milliseconds, "an age of \(age)")
        try hold(!stored.isFresh(for: request, at: then) || age < stored.lifetime, "a stale response is fresh")
        for policy in CachePolicy.allCases { _ = CacheDecision.decide(policy, stored, for: request, at: then) }
    }
    let freshened = stored.freshened(
        by: fields, from: "http://h/", to: request, requestedAt: now, receivedAt: now)
    try hold(freshened.map { $0.matches(request) } ?? true, "a response that was confirmed does not match")
}

/// A date is the same after it is written again; a wait is within its bounds.
func checkDate(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    for now in [now, Timestamp(), .latestWritable] {
        if let wait = RetryAfter.parse(text, now: now) {
            try hold(wait >= RetryAfter.shortest && wait <= RetryAfter.longest, "a wait of \(wait)")
        }
        guard let date = HTTPDate.parse(text, now: now) else { continue }
        let time = CivilTime(milliseconds: date.milliseconds)
        let month = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"][time.month - 1]
        func digits(_ number: Int, _ count: Int) -> String { String(String(number + 10_000).suffix(count)) }
        let clock = [time.hour, time.minute, time.second].map { digits($0, 2) }.joined(separator: ":")
        let written = "Sun, \(digits(time.day, 2)) \(month) \(digits(time.year, 4)) \(clock) GMT"
        guard time.year <= 9999 else { continue }  // The leap second at the end of the last year.
        try hold(HTTPDate.parse(written, now: now) == date, "\(written) is another date")
        if bytes.count == 29, !text.contains(":60 ") { try hold(text.hasSuffix(written.dropFirst(4)), "\(written)") }
    }
}

/// Challenges that are written again are the same.
func checkChallenge(_ bytes: [UInt8]) throws {
    for challenge in Challenge.parse(lines(bytes).map(text)) {
        try hold(!challenge.scheme.isEmpty && challenge.scheme == challenge.scheme.asciiLowercased, "a scheme")
        guard challenge.method != nil else { continue }
        let realm = challenge.realm?.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        let written = challenge.scheme + (realm.map { " realm=\"\($0)\"" } ?? "")
        let again = Challenge.parse([written])
        let isSame = again.map(\.scheme) == [challenge.scheme] && again.map(\.realm) == [challenge.realm]
        try hold(isSame, "\(written) is another challenge")
    }
}

/// Digests that are written again are the same.
func checkDigest(_ bytes: [UInt8]) throws {
    let values = lines(bytes).map(text)
    guard let digests = DigestField.parse(values) else { return }
    try hold(digests.allSatisfy { $0.value.count == $0.key.length }, "the length of a digest")
    try hold(DigestField.parse([DigestField.format(digests)]) == digests, "a digest changes")
    // RFC 8941 section 3.2: only parameters follow the value of a member.
    let field = values.joined(separator: ",")
    guard !field.utf8.contains(UInt8(ascii: "\"")) else { return }
    for member in field.split(separator: ",") {
        let parts = member.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, ["sha-256=", "sha-512="].contains(parts[0].drop { $0 == " " || $0 == "\t" }) else {
            continue
        }
        let rest = parts[2].drop { $0 == " " || $0 == "\t" }
        try hold(rest.isEmpty || rest.first == ";", "\(rest) follows a digest")
    }
}

/// A jar has at most 300 distinct cookies, and is unchanged by a response without new ones.
func checkCookie(_ bytes: [UInt8]) throws {
    let given = lines(bytes).map(text)
    var jar = CookieJar()
    _ = jar.merge(given: [], returned: given, accepts: true, at: now)
    try hold(jar.cookies.count <= CookieJar.maximumCount, "\(jar.cookies.count) cookies")
    try hold(Set(jar.cookies.map(\.key)).count == jar.cookies.count, "a cookie stands twice")
    try hold(jar.cookies.allSatisfy { given.contains($0.line) && !$0.domain.isEmpty }, "a cookie that was not returned")
    try hold(CookieJar(lines: jar.lines) == jar, "a jar changes when it is written and read")
    let before = jar
    let hasExpired = jar.cookies.contains { $0.hasExpired(at: now) }
    let hasChanged = jar.merge(given: before.lines, returned: before.lines, accepts: true, at: now)
    try hold(hasExpired || (!hasChanged && jar == before), "a jar changes by itself")
    _ = jar.lines(for: "a.example", at: now)
}

/// A URL that libcurl parsed is the same URL to every reader.
func checkURL(_ bytes: [UInt8]) throws {
    let text = text(bytes)
    if let url = try? ParsedURL(text) {
        try check(url)
        _ = FileName.suggested(url: url.text, fields: HTTPFields())
    }
    let base = ParsedURL(text: "https://h:8443/a/b?c", isSecure: true, host: "h", port: 8443)
    if let url = try? ParsedURL(location: text, from: base) { try check(url) }
}

private func check(_ url: ParsedURL) throws {
    try hold((try? ParsedURL(url.text)) == url, "\(url.text) is another URL")
    try hold(!url.text.utf8.contains(UInt8(ascii: "#")), "\(url.text) has a fragment")
    // The authority that a plain reader finds.
    let rest = url.text.dropFirst(url.scheme.count + 3)
    let authority = String(rest.prefix { $0 != "/" && $0 != "?" })
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    try hold(url.text.hasPrefix(url.scheme + "://"), "\(url.text) has another scheme")
    let port = url.isSecure ? 443 : 80
    try hold(authority == "\(host):\(url.port)" || authority == host && url.port == port, "\(authority) is not \(host)")
}
