import Core
import Testing

struct CookieJarTests {
    private let now = Timestamp(milliseconds: 1_000_000)

    private func line(
        _ name: String, _ value: String = "v", domain: String = "a.example", path: String = "/", expires: Int64 = 0
    ) -> String {
        "\(domain)\t\(domain.hasPrefix(".") ? "TRUE" : "FALSE")\t\(path)\tFALSE\t\(expires)\t\(name)\t\(value)"
    }

    @Test func `A line has domain, path, name and expiry`() throws {
        let cookie = try #require(Cookie("#HttpOnly_.A.Example\tTRUE\t/x\tTRUE\t77\tn\t"))
        #expect(cookie.domain == "a.example")
        #expect(cookie.includesSubdomains)
        #expect(cookie.path == "/x")
        #expect(cookie.name == "n")
        #expect(cookie.expiresAt == 77)
        #expect(cookie.hasExpired(at: .init(milliseconds: 77_000)))
        #expect(!cookie.hasExpired(at: .init(milliseconds: 76_999)))
    }

    @Test(arguments: [
        "", "# comment", "a\tTRUE\t/\tTRUE\t0\tn", "\tTRUE\t/\tTRUE\t0\tn\tv", "a\tTRUE\t/\tTRUE\tx\tn\tv",
    ])
    func `A malformed line is no cookie`(_ line: String) { #expect(Cookie(line) == nil) }

    @Test func `A host gets its own cookies and those of its parent domains`() {
        let jar = CookieJar(lines: [
            line("own"), line("parent", domain: ".example"), line("other", domain: "b.example"),
            line("suffix", domain: ".ple"), line("old", expires: 1000), line("new", expires: 1001),
            line("below", domain: ".x.a.example"),
        ])
        #expect(jar.lines(for: "A.example", at: now).compactMap { Cookie($0)?.name } == ["own", "parent", "new"])
    }

    @Test func `Cookies that an exchange set are kept, cookies that it deleted are removed, the others stay`() {
        var jar = CookieJar(lines: [
            line("a", "1"), line("b", "1"), line("c", "1"), line("d", "1", domain: "b.example"),
        ])
        let given = jar.lines(for: "a.example", at: now)
        let returned = [line("a", "1"), line("b", "2"), line("e", "1")]
        let isChanged1 = jar.merge(given: given, returned: returned, accepts: true, at: now)
        #expect(isChanged1)
        #expect(
            jar.lines == [line("a", "1"), line("d", "1", domain: "b.example"), line("b", "2"), line("e", "1")])
        let isChanged2 = jar.merge(given: returned, returned: returned, accepts: true, at: now)
        #expect(!isChanged2)
    }

    @Test func `Concurrent exchanges undo no changes of each other`() {
        var jar = CookieJar(lines: [line("a", "1")])
        let given = jar.lines
        let isChanged3 = jar.merge(given: given, returned: [line("a", "2")], accepts: true, at: now)
        #expect(isChanged3)
        let isChanged4 = jar.merge(given: given, returned: [line("a", "1"), line("b", "1")], accepts: true, at: now)
        #expect(isChanged4)
        #expect(jar.lines == [line("a", "2"), line("b", "1")])
        // An exchange that deleted the old value does not delete the new one.
        let isChanged5 = jar.merge(given: given, returned: [], accepts: true, at: now)
        #expect(!isChanged5)
    }

    @Test func `Cookies of third parties may be deleted but not set`() {
        var jar = CookieJar(lines: [line("a"), line("b")])
        let isChanged6 = jar.merge(given: jar.lines, returned: [line("a", "9"), line("c")], accepts: false, at: now)
        #expect(isChanged6)
        #expect(jar.lines == [line("a")])
    }

    @Test func `Name, domain and path decide what is replaced`() {
        var jar = CookieJar()
        let different = [line("a"), line("A"), line("a", path: "/x"), line("a", domain: ".a.example")]
        let isChanged7 = jar.merge(given: [], returned: different, accepts: true, at: now)
        #expect(isChanged7)
        #expect(jar.cookies.count == 4)
        let isChanged8 = jar.merge(given: [], returned: [line("a", "new")], accepts: true, at: now)
        #expect(isChanged8)
        #expect(jar.cookies.count == 4)
        #expect(jar.lines.last == line("a", "new"))
    }

    @Test func `The oldest cookies are removed, and oversized ones are not kept`() {
        var jar = CookieJar()
        let many = (0..<CookieJar.maximumCount + 5).map { line("n\($0)") }
        let isChanged9 = jar.merge(given: [], returned: many, accepts: true, at: now)
        #expect(isChanged9)
        #expect(jar.lines == Array(many.dropFirst(5)))
        let endless = line("endless", String(repeating: "x", count: CookieJar.longestCookie))
        let isChanged10 = jar.merge(given: [], returned: [endless], accepts: true, at: now)
        #expect(!isChanged10)
    }
}
