import Core
import Testing
import TransferEngine

@Suite struct ParsedURLTests {
    @Test(arguments: [
        ("http://example.com", "http://example.com/", "http://example.com:80"),
        ("HTTPS://Example.COM:8443/a?b#c", "https://example.com:8443/a?b", "https://example.com:8443"),
        ("http://127.1/", "http://127.0.0.1/", "http://127.0.0.1:80"),
        ("http://0x7f000001/", "http://127.0.0.1/", "http://127.0.0.1:80"),
        ("http://127.0.0.1./", "http://127.0.0.1/", "http://127.0.0.1:80"),
        ("http://0X7F.1.:8080/a", "http://127.0.0.1:8080/a", "http://127.0.0.1:8080"),
        ("http://a1.example./", "http://a1.example./", "http://a1.example.:80"),
        ("http://[::1]:8080/x", "http://[::1]:8080/x", "http://[::1]:8080"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/", "http://xn--bcher-kva.example:80"),
        ("http://①②⑦.0.0.1/", "http://127.0.0.1/", "http://127.0.0.1:80"),
        ("http://example.com/ü", "http://example.com/%C3%BC", "http://example.com:80"),
    ])
    func `URLs are parsed as by libcurl`(text: String, url: String, origin: String) throws {
        let parsed = try ParsedURL(text)
        #expect(parsed.text.lowercased() == url.lowercased())
        #expect(parsed.origin == origin)
    }

    @Test(arguments: [
        "", "example.com", "//example.com/", "ftp://example.com/", "file:///etc/passwd", "http://", "http:///x",
        "http:/x", "http:x", "http://user@example.com/", "http://user:pw@example.com/", "http://@example.com/",
        "http://a b/", "http://example.com/a b", "http://exa\\mple.com/", "http://example.com\\@evil.com/",
        "http://good.com%00.evil.com/", "http://%31%32%37.0.0.1/", "http://[fe80::1%25lo]/", "http://[fe80::1%lo]/",
        "http://example.com:0/", "http://example.com:65536/", "http://example.com:/", "http://[::1/",
        "http://[1.2.3.4]/",
        "http://example.com/\r\nX: y", "http://example.com/\u{0}", "http://exa\tmple.com/",
        "http://" + String(repeating: "a", count: 300) + "/",
        "http://example.com/" + String(repeating: "a", count: 9000),
    ])
    func `Deceptive URLs are refused`(text: String) {
        #expect(throws: BadURL.self) { try ParsedURL(text) }
    }

    @Test(arguments: [
        ("/b", "https://example.com/b"), ("c", "https://example.com/a/c"), ("../d?e", "https://example.com/d?e"),
        ("//other.example/f", "https://other.example/f"), ("http://third.example", "http://third.example/"),
        ("?q=1", "https://example.com/a/b?q=1"), ("/with space", "https://example.com/with%20space"),
        ("/g#h", "https://example.com/g"), ("#i", "https://example.com/a/b"),
    ])
    func `Locations are resolved`(location: String, url: String) throws {
        let base = try ParsedURL("https://example.com/a/b")
        #expect(try ParsedURL(location: location, from: base).text == url)
    }

    @Test(arguments: [
        "", "file:///etc/passwd", "ftp://example.com/", "javascript:x", "https://user:pw@example.com/", "//%31/",
        "/a\r\nb", "http://[fe80::1%25lo]/",
    ])
    func `Deceptive locations are refused`(location: String) throws {
        let base = try ParsedURL("https://example.com/a/b")
        #expect(throws: BadURL.self) { try ParsedURL(location: location, from: base) }
    }
}
