import Base
import Core
import TestSupport
import Testing
import TransferEngine

struct CookieTests {
    private func names(_ result: ExchangeResult) -> [String] { result.cookies.compactMap { Cookie($0)?.name }.sorted() }

    private let line = "127.0.0.1\tFALSE\t/\tFALSE\t0\tkept\t1"

    @Test func `Given cookies are sent and set ones are returned`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .text("x"),
            always: [
                .header("Set-Cookie", "new=2; Path=/; HttpOnly"), .header("Set-Cookie", "far=3; Domain=example.com"),
            ])
        let other = "example.com\tFALSE\t/\tFALSE\t0\tother\t1"
        let result = try await harness.run(harness.request("/") { $0.cookies = [line, other] })
        #expect(harness.origin.requests.map { $0.fields["Cookie"] } == ["kept=1"])
        #expect(names(result) == ["kept", "new", "other"])
        #expect(result.cookies.contains { $0.hasPrefix("#HttpOnly_127.0.0.1\t") })
    }

    @Test func `Cookies that may not be sent are still deleted and replaced`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .text("x"),
            always: [
                .informational(103), .header("Set-Cookie", "kept=0; Max-Age=0; Path=/"),
                .header("Set-Cookie", "two=2; Path=/"),
            ])
        let two = "127.0.0.1\tFALSE\t/\tFALSE\t0\ttwo\t1"
        let result = try await harness.run(
            harness.request("/") {
                $0.cookies = [line, two]
                $0.sendsCookies = false
            })
        #expect(harness.origin.requests.map { $0.fields["Cookie"] } == [nil])
        #expect(result.cookies == ["127.0.0.1\tFALSE\t/\tFALSE\t0\ttwo\t2"])
    }

    @Test func `A digest challenge does not send cookies that may not be sent`() async throws {
        let harness = try EngineHarness()
        let challenge = Misbehaviour.status(
            401, [("WWW-Authenticate", "Digest realm=\"r\", nonce=\"n\", qop=\"auth\"")], body: "no")
        harness.origin.serve("/", .text("x"), turns: [[challenge], [.header("Set-Cookie", "new=2; Path=/")]])
        let result = try await harness.run(
            harness.request("/") {
                $0.cookies = [line]
                $0.sendsCookies = false
                $0.httpAuthentication = HTTPAuthentication(user: "u", password: "p", isDigest: true)
            })
        #expect(harness.origin.requests.map { $0.fields["Cookie"] } == [nil, nil])
        #expect(names(result) == ["kept", "new"])
    }

    @Test func `A reused handle has no cookies`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("x"), always: [.header("Set-Cookie", "new=2; Path=/")])
        try await harness.run(harness.request("/") { $0.cookies = [line] })
        let off = try await harness.run(harness.request("/"))
        let empty = try await harness.run(harness.request("/") { $0.cookies = [] })
        #expect(harness.origin.requests.map { $0.fields["Cookie"] } == ["kept=1", nil, nil])
        #expect(off.cookies.isEmpty)
        #expect(names(empty) == ["new"])
    }

    @Test func `An unreachable server leaves the cookies unchanged`() async throws {
        let harness = try EngineHarness()
        harness.origin.stop()
        for sends in [true, false] {
            let result = try await harness.run(
                harness.request("/") {
                    $0.cookies = [line]
                    $0.sendsCookies = sends
                })
            #expect(result.cookies == [line])
        }
    }

    @Test func `No response sets a cookie for a public suffix`() async throws {
        let harness = try EngineHarness(resolve: { _ in .addresses([.v4(0x7F00_0001)]) })
        harness.origin.serve(
            "/", .text("x"),
            always: [
                .header("Set-Cookie", "wide=1; Domain=co.uk"), .header("Set-Cookie", "right=1; Domain=shop.co.uk"),
            ])
        let result = try await harness.run(
            harness.request("http://www.shop.co.uk:\(harness.origin.port)/") {
                $0.cookies = []
            })
        #expect(names(result) == ["right"])
    }

    @Test func `Hosts of one registered domain are related`() throws {
        func related(_ one: String, _ other: String) throws -> Bool {
            PublicSuffixes.areRelated(try ParsedURL("http://\(one)/"), try ParsedURL("http://\(other)/"))
        }
        #expect(try related("www.shop.co.uk", "img.shop.co.uk"))
        #expect(try related("shop.co.uk", "WWW.shop.co.uk"))
        #expect(try related("localhost", "localhost"))
        #expect(try related("127.0.0.1", "127.0.0.1"))
        #expect(try !related("127.0.0.1", "128.0.0.1"))
        #expect(try !related("a.co.uk", "b.co.uk"))
        #expect(try !related("a.github.io", "b.github.io"))
        #expect(try !related("example.com", "example.org"))
        #expect(try !related("a", "b"))
        #expect(PublicSuffixes.registrableDomain(of: "x.y.example.com") == "example.com")
    }
}
