import Testing

@testable import Wire

@Suite struct TextRuleTests {
    @Test(arguments: [
        "http://h", "HTTPS://h/", "https://example.com:8443/a?b=c#d", "http://[2001:db8::1]:80/", "http://127.0.0.1/",
        "http://h?x", "https://xn--bcher-kva.example/%20", "http://h:1/",
    ])
    func `A URL is absolute and plain`(_ text: String) {
        #expect(TextRule.url.fault(text) == nil)
    }

    @Test(arguments: [
        "", "a.com/x", "//a/b", "/a", "file:///etc/passwd", "ftp://h/", "javascript:alert(1)", "http:/a/b", "http:///x",
        "http://", "http://?x", "http://user@h/", "http://u:p@h/", "http://x@y@z/", "http://h/a b", "http://h/\t",
        "http://h/\r\nX: y", "http://h\\@evil.com/", "http://h:0/", "http://h:99999/", "http://h:-1/", "http://h:/",
        "http://h:80:90/", "http://good.com%00.evil.com/", "http://good.com%2f.evil.com/", "http://[::1%25lo]/",
        "http://[::1/", "http://[::1]x/", "http://①②⑦.0.0.1/", "http://127。0。0。1/", "http://bücher.example/",
        "http://h/<>", "http://h/{}", "unix:/x",
    ])
    func `A URL that libcurl and other parsers read differently is refused`(_ text: String) {
        #expect(TextRule.url.fault(text) != nil)
    }

    @Test func `A URL has at most 8 KiB`() {
        #expect(TextRule.url.fault("http://h/" + String(repeating: "a", count: 8183)) == nil)
        #expect(TextRule.url.fault("http://h/" + String(repeating: "a", count: 8184)) != nil)
    }

    @Test(arguments: [
        "2026-12-01T00:00:00Z", "2026-12-01T00:00:00.123Z", "2024-02-29t23:59:59.123456789+14:00",
        "2000-02-29T00:00:00-00:30", "0001-01-01T00:00:00z",
    ])
    func `Times follow RFC 3339`(_ text: String) {
        #expect(TextRule.timestamp.fault(text) == nil)
    }

    @Test(arguments: [
        "", "2026-12-01", "2026-12-01T00:00:00", "2026-12-01 00:00:00Z", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
        "1900-02-29T00:00:00Z", "2026-12-01T24:00:00Z", "2026-12-01T00:60:00Z", "2026-12-01T00:00:00.Z",
        "2026-12-01T00:00:00+1:00", "2026-12-01T00:00:00+24:00", "10000-01-01T00:00:00Z", "2026-12-01T00:00:00Zx",
        "+026-12-01T00:00:00Z", "2026-1-01T00:00:00.00Z",
    ])
    func `An invalid time is refused`(_ text: String) {
        #expect(TextRule.timestamp.fault(text) != nil)
    }

    @Test func `Identifiers have 1 to 128 characters of a limited set`() {
        for text in ["a", "com.example.bg", "A-Z_0~9:@+", String(repeating: "x", count: 128)] {
            #expect(TextRule.identifier.fault(text) == nil)
        }
        for text in ["", "a b", "a/b", "é", "a\n", "\u{212A}", String(repeating: "x", count: 129)] {
            #expect(TextRule.identifier.fault(text) != nil)
        }
    }

    @Test func `Paths stay below their root`() {
        for text in ["a", "a/b.c", "...", ".a", "é/ü", String(repeating: "x", count: 255)] {
            #expect(TextRule.relativePath.fault(text) == nil)
        }
        for text in ["", ".", "..", "/a", "a/", "a//b", "a/../b", "a/.", "a\n", String(repeating: "x", count: 256)] {
            #expect(TextRule.relativePath.fault(text) != nil)
        }
    }

    @Test func `Methods are tokens in upper case`() {
        for text in ["GET", "POST", "M-SEARCH"] { #expect(TextRule.method.fault(text) == nil) }
        for text in ["", "get", "GET\r\nX", "A B", "CONNECT", "TRACE", String(repeating: "A", count: 33)] {
            #expect(TextRule.method.fault(text) != nil)
        }
    }

    @Test func `Status codes are read as ranges`() {
        #expect(StatusCodes.parse("204") == 204...204)
        #expect(StatusCodes.parse("200-299") == 200...299)
        for text in ["", "20", "2000", "200-", "-299", "200-299-300", "600", "99", "+20", "200 "] {
            #expect(StatusCodes.parse(text) == nil)
        }
    }

    @Test func `Base64 has one text for each value`() {
        for (bytes, text) in [([], ""), ([0x66], "Zg=="), ([0x66, 0x6F], "Zm8="), ([0xFB, 0xEF, 0xFF], "++//")]
            as [([UInt8], String)]
        {
            #expect(Base64.encode(bytes) == text)
            #expect(Base64.decode(text) == bytes)
        }
        for text in ["Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "--__", "Zm9v\n"] {
            #expect(Base64.decode(text) == nil)
        }
    }
}
