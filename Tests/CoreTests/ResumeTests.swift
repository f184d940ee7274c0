import Formats
import Testing

@testable import Core

@Suite struct ResumeTests {
    static let tagged = [("ETag", "\"a\""), ("Content-Length", "100")]
    static let dated = [
        ("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT"), ("Date", "Mon, 30 Nov 2026 00:00:01 GMT"),
    ]

    static func make(_ fields: [(String, String)], status: Int = 200, method: String = "GET") -> ResumePoint? {
        ResumePoint.make(from: head(status, fields), method: method, url: "http://a/b", receivedAt: now)
    }

    static func point(total: Int64? = 100, offset: Int64 = 50, tag: String? = "\"a\"") -> ResumePoint {
        ResumePoint {
            $0.url = "http://a/b"
            $0.entityTag = tag
            $0.totalLength = total
            $0.offset = offset
        }
    }

    @Test func `A strong entity tag makes a resume point, and the request asks for the rest with it`() throws {
        var point = try #require(Self.make(Self.tagged))
        #expect(point.totalLength == 100)
        #expect(point.offset == 0)
        point.offset = 50
        #expect(point.requestFields["Range"] == "bytes=50-")
        #expect(point.requestFields["If-Range"] == "\"a\"")
    }

    @Test func `A strong date serves without an entity tag`() throws {
        let point = try #require(Self.make(Self.dated))
        #expect(point.requestFields["If-Range"] == "Mon, 30 Nov 2026 00:00:00 GMT")
        #expect(point.totalLength == nil)
        let both = try #require(Self.make(Self.dated + Self.tagged))
        #expect(both.requestFields["If-Range"] == "\"a\"")
    }

    @Test(
        arguments: [
            [], [("ETag", "W/\"a\"")], [("ETag", "a")], [("ETag", "\"a\"b\"")], [("ETag", "\"")],
            [("ETag", "\"a\""), ("ETag", "\"b\"")], tagged + [("Accept-Ranges", "none")],
            tagged + [("Content-Encoding", "gzip")], tagged + [("Content-Length", "101")],
            [("Last-Modified", "Mon, 30 Nov 2026 00:00:01 GMT"), ("Date", "Mon, 30 Nov 2026 00:00:01 GMT")],
            [("Last-Modified", "Tue, 30 Nov 2027 00:00:00 GMT"), ("Date", "Mon, 30 Nov 2026 00:00:01 GMT")],
            [("Last-Modified", "Mon, 30 Nov 2026 23:59:30 GMT")], [("Last-Modified", "yesterday")],
            dated + [("ETag", "W/\"a\"")], [dated[0], ("Date", "nonsense")],
        ] as [[(String, String)]])
    func `Weak, missing or contradicting validators make no resume point`(_ fields: [(String, String)]) {
        #expect(Self.make(fields) == nil)
    }

    @Test(arguments: [(206, "bytes 50-99/100", 50), (416, "bytes */100", 100)] as [(Int, String, Int64)])
    func `Equal validators of another server prove nothing`(_ status: Int, _ range: String, _ offset: Int64) {
        let answer = head(status, [("ETag", "\"a\""), ("Content-Range", range)])
        let point = Self.point(offset: offset)
        #expect(!ResumeVerdict.judge(head: answer, resuming: point).asksAgain)
        #expect(
            ResumeVerdict.judge(head: answer, resuming: point, isElsewhere: true) == .askAgainFromZero(.otherServer))
    }

    @Test func `Only a 200 to GET can be resumed`() {
        #expect(Self.make(Self.tagged, status: 206) == nil)
        #expect(Self.make(Self.tagged, status: 203) == nil)
        #expect(Self.make(Self.tagged, method: "POST") == nil)
        #expect(Self.make(Self.tagged + [("Content-Encoding", "identity"), ("Accept-Ranges", "bytes")]) != nil)
        #expect(Self.make([Self.dated[0]]) != nil)
    }

    static let part = [("Content-Range", "bytes 50-99/100"), ("Content-Length", "50"), ("ETag", "\"a\"")]

    static func replacing(_ name: String, _ value: String?) -> [(String, String)] {
        part.filter { $0.0 != name } + (value.map { [(name, $0)] } ?? [])
    }

    @Test(
        arguments: [
            (part, .append(at: 50)),
            (replacing("Content-Length", nil), .append(at: 50)),
            (replacing("ETag", nil), .askAgainFromZero(.validatorChanged)),
            (replacing("ETag", "\"b\""), .askAgainFromZero(.validatorChanged)),
            (replacing("ETag", "W/\"a\""), .askAgainFromZero(.validatorChanged)),
            (replacing("Content-Length", "20"), .askAgainFromZero(.lengthMismatch)),
            (replacing("Content-Length", "+50"), .askAgainFromZero(.lengthMismatch)),
            (replacing("Content-Range", nil), .askAgainFromZero(.contentRangeMissing)),
            (replacing("Content-Range", "items 50-99/100"), .askAgainFromZero(.contentRangeMismatch)),
            (replacing("Content-Range", "bytes 50-99/101"), .askAgainFromZero(.totalChanged)),
            (replacing("Content-Range", "bytes 50-99/*"), .askAgainFromZero(.totalChanged)),
            (replacing("Content-Range", "bytes 50-98/100"), .askAgainFromZero(.contentRangeMismatch)),
            (replacing("Content-Range", "bytes 51-99/100"), .askAgainFromZero(.contentRangeMismatch)),
            (replacing("Content-Range", "bytes */100"), .askAgainFromZero(.contentRangeMismatch)),
            (part + [("Content-Range", "bytes 50-99/100")], .askAgainFromZero(.contentRangeMismatch)),
            (part + [("Content-Encoding", "gzip")], .askAgainFromZero(.contentCoded)),
            (part + [("Content-Type", "multipart/byteranges; boundary=x")], .askAgainFromZero(.multipart)),
            (
                [("Content-Range", "bytes 20-99/100"), ("Content-Length", "80"), ("ETag", "\"a\"")],
                .append(at: 20)
            ),
        ] as [([(String, String)], ResumeVerdict)])
    func `A 206 is accepted only if all its fields fit`(_ fields: [(String, String)], _ verdict: ResumeVerdict) {
        #expect(ResumeVerdict.judge(head: head(206, fields), resuming: Self.point()) == verdict)
    }

    @Test func `An unknown total is accepted, or learned from the response`() {
        let unknown = Self.point(total: nil)
        for range in ["bytes 50-99/*", "bytes 50-99/100"] {
            #expect(
                ResumeVerdict.judge(head: head(206, [("Content-Range", range), ("ETag", "\"a\"")]), resuming: unknown)
                    == .append(at: 50))
        }
        let short = head(206, [("Content-Range", "bytes 0-49/*")])
        #expect(ResumeVerdict.judge(head: short, resuming: unknown) == .askAgainFromZero(.contentRangeMismatch))
    }

    @Test func `A part without the date of the content is no proof of its version`() {
        var point = Self.point()
        (point.entityTag, point.lastModified) = (nil, "Mon, 30 Nov 2026 00:00:00 GMT")
        point.lastModifiedIsStrong = true
        let part = Self.replacing("ETag", nil)
        #expect(ResumeVerdict.judge(head: head(206, part), resuming: point) == .askAgainFromZero(.validatorChanged))
        let dated = head(206, part + [("Last-Modified", "Mon, 30 Nov 2026 00:00:00 GMT")])
        #expect(ResumeVerdict.judge(head: dated, resuming: point) == .append(at: 50))
    }

    @Test func `A 206 says where its bytes end`() {
        func end(_ range: String, status: Int = 206, _ verdict: ResumeVerdict) -> Int64? {
            verdict.end(of: head(status, [("Content-Range", range)]))
        }
        #expect(end("bytes 50-99/100", .append(at: 50)) == 100)
        #expect(end("bytes 50-99/*", .append(at: 0)) == 50, "the app's own range")
        #expect(end("bytes 0-9223372036854775807/*", .append(at: 5)) == .max)
        #expect(end("bytes 50-99/100", status: 200, .append(at: 50)) == nil)
        #expect(end("bytes 50-99/100", .restartWithThisBody) == nil)
    }

    @Test func `A changed date is another version`() {
        var point = Self.point()
        point.lastModified = "Mon, 30 Nov 2026 00:00:00 GMT"
        let changed = head(206, Self.part + [("Last-Modified", "Mon, 30 Nov 2026 00:00:05 GMT")])
        #expect(ResumeVerdict.judge(head: changed, resuming: point) == .askAgainFromZero(.validatorChanged))
    }

    @Test(arguments: [200, 203, 204])
    func `Another success to a Range request restarts the file`(_ status: Int) {
        let answer = head(status, [("Content-Range", "bytes 50-99/100")])
        #expect(ResumeVerdict.judge(head: answer, resuming: Self.point()) == .restartWithThisBody)
    }

    @Test(
        arguments: [
            ([("Content-Range", "bytes */100")], 100, 100, .alreadyComplete),
            ([("Content-Range", "bytes */100"), ("ETag", "\"a\"")], nil, 100, .alreadyComplete),
            ([("Content-Range", "bytes */100")], nil, 100, .askAgainFromZero(.rangeNotSatisfiable)),
            ([("Content-Range", "bytes */100"), ("ETag", "\"b\"")], 100, 100, .askAgainFromZero(.rangeNotSatisfiable)),
            ([("Content-Range", "bytes */100")], 100, 50, .askAgainFromZero(.rangeNotSatisfiable)),
            ([("Content-Range", "bytes */100")], 200, 100, .askAgainFromZero(.rangeNotSatisfiable)),
            ([("Content-Range", "bytes 0-99/100")], 100, 100, .askAgainFromZero(.rangeNotSatisfiable)),
            ([], 100, 100, .askAgainFromZero(.rangeNotSatisfiable)),
        ] as [([(String, String)], Int64?, Int64, ResumeVerdict)])
    func `A 416 means completion only if it has the length and validator of the file`(
        _ fields: [(String, String)], _ total: Int64?, _ offset: Int64, _ verdict: ResumeVerdict
    ) {
        let point = Self.point(total: total, offset: offset)
        #expect(ResumeVerdict.judge(head: head(416, fields), resuming: point) == verdict)
    }

    @Test func `A date can confirm a 416 too`() {
        var point = ResumePoint {
            $0.url = "u"
            $0.lastModified = "Mon, 30 Nov 2026 00:00:00 GMT"
            $0.lastModifiedIsStrong = true
            $0.offset = 100
        }
        let answer = head(416, [("Content-Range", "bytes */100"), Self.dated[0]])
        #expect(ResumeVerdict.judge(head: answer, resuming: point) == .alreadyComplete)
        point.lastModifiedIsStrong = false
        #expect(ResumeVerdict.judge(head: answer, resuming: point) == .askAgainFromZero(.rangeNotSatisfiable))
    }

    @Test func `Other responses leave the bytes unchanged`() {
        for status in [301, 304, 404, 503] {
            #expect(
                ResumeVerdict.judge(head: head(status), resuming: Self.point()) == .notADownload(status: status))
            #expect(ResumeVerdict.judge(head: head(status), resuming: nil) == .notADownload(status: status))
        }
        #expect(
            ResumeVerdict.judge(head: head(412), resuming: Self.point()) == .askAgainFromZero(.preconditionFailed))
    }

    @Test func `A fresh download accepts any success, and a part only if it is requested or complete`() {
        #expect(ResumeVerdict.judge(head: head(200), resuming: nil) == .append(at: 0))
        #expect(ResumeVerdict.judge(head: head(204), resuming: Self.point(offset: 0)) == .append(at: 0))
        let part = head(206, Self.part)
        #expect(ResumeVerdict.judge(head: part, resuming: nil) == .askAgainFromZero(.unaskedPart))
        #expect(ResumeVerdict.judge(head: part, resuming: nil, requestHasOwnRange: true) == .append(at: 0))
        let whole = head(206, [("Content-Range", "bytes 0-99/100")])
        #expect(ResumeVerdict.judge(head: whole, resuming: nil) == .append(at: 0))
    }

    @Test(
        arguments: [
            ([], .none), (["50"], .length(50)), (["50", "50"], .length(50)), (["50", "100"], .invalid),
            (["50, 50"], .invalid), (["+100"], .invalid), (["-5"], .invalid), (["abc"], .invalid), ([""], .invalid),
            (["12345678901234567890123"], .invalid), (["9223372036854775807"], .length(.max)),
            (["9223372036854775808"], .invalid), ([" 5 "], .length(5)),
        ] as [([String], ContentLength)])
    func `A length is one number or nothing`(_ values: [String], _ length: ContentLength) {
        #expect(ContentLength.parse(HTTPFields(values.map { HTTPField(name: "content-length", value: $0) })) == length)
    }

    @Test(
        arguments: [
            ("bytes 0-0/1", .part(first: 0, last: 0, total: 1)), ("BYTES 1-2/*", .part(first: 1, last: 2, total: nil)),
            ("bytes */0", .unsatisfied(total: 0)),
        ] as [(String, ContentRange)])
    func `A content range is parsed`(_ text: String, _ range: ContentRange) {
        #expect(ContentRange(text) == range)
    }

    @Test(arguments: [
        "", "bytes", "bytes 0-0", "bytes 1-0/2", "bytes 0-1/1", "bytes=0-0/1", "bytes  0-0/1", "bytes 0-0/1,2-2/3",
        "bytes */*", "bytes -1/2", "bytes 0-0/1 x", "bytes 0-99999999999999999999/*", "bytes 0-1/*x",
    ])
    func `An invalid content range is refused`(_ text: String) {
        #expect(ContentRange(text) == nil)
    }
}
