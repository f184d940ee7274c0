import Formats
import Testing

@testable import Core

/// Reuse of stored responses by RFC 9111, as a private cache.
@Suite struct CacheTests {
    static let date = "Tue, 01 Dec 2026 00:00:00 GMT"
    static let hourLater = "Tue, 01 Dec 2026 01:00:00 GMT"
    static let hourBefore = "Mon, 30 Nov 2026 23:00:00 GMT"

    static func fields(_ pairs: KeyValuePairs<String, String>) -> HTTPFields {
        HTTPFields(pairs.map { HTTPField(name: $0.key, value: $0.value) })
    }

    /// A response to a request that began and was answered ``now``.
    static func stored(
        _ pairs: KeyValuePairs<String, String>, to request: HTTPFields = HTTPFields(), delay: Double = 0,
        isRedirected: Bool = false
    ) -> CachedResponse? {
        let response = TaskResponse {
            $0.statusCode = 200
            $0.url = "https://example.com/a"
            $0.headers = fields(pairs)
        }
        return CachedResponse(
            response, fields(pairs), to: request, requestedAt: .after(-delay), receivedAt: now,
            isRedirected: isRedirected)
    }

    // MARK: Freshness

    struct Freshness: CustomTestStringConvertible, Sendable {
        let rule: String
        let fields: HTTPFields
        var request = HTTPFields()
        /// The number of seconds after which the response is stale.
        let fresh: Double
        var testDescription: String { rule }
    }

    static let freshness = [
        Freshness(
            rule: "no explicit freshness", fields: fields(["Date": date, "Last-Modified": hourBefore]), fresh: 0),
        Freshness(rule: "max-age", fields: fields(["Cache-Control": "max-age=60"]), fresh: 60),
        Freshness(rule: "names ignore case", fields: fields(["cache-control": "public, MAX-AGE=60"]), fresh: 60),
        Freshness(rule: "a quoted argument", fields: fields(["Cache-Control": "max-age=\"60\""]), fresh: 60),
        Freshness(rule: "an invalid max-age", fields: fields(["Cache-Control": "max-age=soon"]), fresh: 0),
        Freshness(rule: "two max-age", fields: fields(["Cache-Control": "max-age=60, max-age=9"]), fresh: 9),
        Freshness(
            rule: "two lines", fields: fields(["Cache-Control": "private", "cache-control": "max-age=60"]), fresh: 60),
        Freshness(rule: "s-maxage is for shared caches", fields: fields(["Cache-Control": "s-maxage=60"]), fresh: 0),
        Freshness(
            rule: "a directive within a string", fields: fields(["Cache-Control": "x=\"no-cache, \", max-age=60"]),
            fresh: 60),
        Freshness(rule: "Expires", fields: fields(["Date": date, "Expires": hourLater]), fresh: 3600),
        Freshness(rule: "Expires without Date", fields: fields(["Expires": hourLater]), fresh: 3600),
        Freshness(rule: "Expires in the past", fields: fields(["Date": date, "Expires": hourBefore]), fresh: 0),
        Freshness(rule: "an invalid Expires", fields: fields(["Expires": "0"]), fresh: 0),
        Freshness(
            rule: "max-age before Expires", fields: fields(["Cache-Control": "max-age=60", "Expires": hourLater]),
            fresh: 60),
        Freshness(
            rule: "max-age=0 before Expires", fields: fields(["Cache-Control": "max-age=0", "Expires": hourLater]),
            fresh: 0),
        Freshness(rule: "Age", fields: fields(["Cache-Control": "max-age=60", "Age": "20"]), fresh: 40),
        Freshness(rule: "the first Age", fields: fields(["Cache-Control": "max-age=60", "Age": "20, 50"]), fresh: 40),
        Freshness(
            rule: "Date in the past", fields: fields(["Cache-Control": "max-age=7200", "Date": hourBefore]), fresh: 3600
        ),
        Freshness(
            rule: "Date in the future", fields: fields(["Cache-Control": "max-age=60", "Date": hourLater]), fresh: 60),
        Freshness(rule: "no-cache", fields: fields(["Cache-Control": "no-cache, max-age=60"]), fresh: 0),
        Freshness(
            rule: "no-cache with names", fields: fields(["Cache-Control": "no-cache=\"set-cookie\", max-age=60"]),
            fresh: 0),
        Freshness(rule: "Pragma", fields: fields(["Pragma": "no-cache", "Expires": hourLater]), fresh: 0),
        Freshness(
            rule: "must-revalidate changes nothing while fresh",
            fields: fields(["Cache-Control": "must-revalidate, max-age=60"]), fresh: 60),
        Freshness(rule: "private", fields: fields(["Cache-Control": "private, max-age=60"]), fresh: 60),
        Freshness(
            rule: "no-cache of the request", fields: fields(["Cache-Control": "max-age=60"]),
            request: fields(["Cache-Control": "no-cache"]), fresh: 0),
        Freshness(
            rule: "Pragma of the request", fields: fields(["Cache-Control": "max-age=60"]),
            request: fields(["Pragma": "no-cache"]), fresh: 0),
        Freshness(
            rule: "max-age of the request", fields: fields(["Cache-Control": "max-age=60"]),
            request: fields(["Cache-Control": "max-age=10"]), fresh: 10),
        Freshness(
            rule: "min-fresh of the request", fields: fields(["Cache-Control": "max-age=60"]),
            request: fields(["Cache-Control": "min-fresh=50"]), fresh: 10),
    ]

    @Test(arguments: freshness) func `Freshness ends at the time that the rules determine`(_ row: Freshness) throws {
        let response = try #require(
            CachedResponse(
                TaskResponse { $0.statusCode = 200 }, row.fields, to: HTTPFields(), requestedAt: now, receivedAt: now))
        #expect(!response.isFresh(for: row.request, at: .after(row.fresh + 0.5)))
        if row.fresh > 0 { #expect(response.isFresh(for: row.request, at: .after(row.fresh - 0.5))) }
        if row.fresh == 0 { #expect(!response.isFresh(for: row.request, at: now)) }
    }

    @Test func `A slow response is older by its delay`() throws {
        let slow = try #require(Self.stored(["Cache-Control": "max-age=60", "Age": "10"], delay: 20))
        #expect(slow.age(at: now) == 30_000)
        #expect(slow.age(at: .after(5)) == 35_000)
    }

    @Test func `A redirected response is stale at once, and can be validated`() throws {
        let response = try #require(Self.stored(["Cache-Control": "max-age=60", "ETag": "\"a\""], isRedirected: true))
        #expect(!response.isFresh(for: HTTPFields(), at: now) && response.conditions != nil)
    }

    // MARK: Storing

    @Test(arguments: [
        (fields([:]), fields([:]), true), (fields(["Cache-Control": "private"]), fields([:]), true),
        (fields(["Cache-Control": "no-store"]), fields([:]), false),
        (fields(["Cache-Control": "max-age=60, No-Store"]), fields([:]), false),
        (fields(["Cache-Control": "no-cache"]), fields([:]), true),
        (fields([:]), fields(["Cache-Control": "no-store"]), false),
        (fields(["Vary": "*"]), fields([:]), false), (fields(["Vary": "Accept, *"]), fields([:]), false),
        (fields(["Vary": "Accept"]), fields([:]), true),
        // Shared caches need permission for these; a private one does not.
        (fields([:]), fields(["Authorization": "Bearer x"]), true),
        (fields(["Vary": String(repeating: "a", count: 9000)]), fields([:]), false),
    ]) func `Only reusable responses are stored`(_ response: HTTPFields, _ request: HTTPFields, _ isStored: Bool) {
        let head = TaskResponse { $0.statusCode = 200 }
        let cached = CachedResponse(head, response, to: request, requestedAt: now, receivedAt: now)
        #expect((cached != nil) == isStored)
    }

    @Test(arguments: [201, 204, 206, 301, 304, 404]) func `Only a 200 is stored`(_ status: Int) {
        let head = TaskResponse { $0.statusCode = status }
        #expect(CachedResponse(head, HTTPFields(), to: HTTPFields(), requestedAt: now, receivedAt: now) == nil)
    }

    // MARK: Vary

    @Test(arguments: [
        ("Accept", fields(["Accept": "a"]), fields(["accept": "a"]), true),
        ("Accept", fields(["Accept": "a"]), fields(["Accept": "b"]), false),
        ("Accept", fields(["Accept": "a"]), fields([:]), false), ("Accept", fields([:]), fields([:]), true),
        ("Accept", fields([:]), fields(["Accept": ""]), false),
        ("Accept", fields(["Accept": "a"]), fields(["Accept": "a", "X": "y"]), true),
        ("accept , X", fields(["Accept": "a", "X": "y"]), fields(["X": "y", "Accept": "a"]), true),
        ("X", fields(["X": "a", "x": "b"]), fields(["X": "a,b"]), true),
    ]) func `Vary selects by the request's fields`(
        _ vary: String, _ first: HTTPFields, _ second: HTTPFields, _ isSelected: Bool
    ) throws {
        let response = try #require(Self.stored(["Vary": vary], to: first))
        #expect(response.matches(second) == isSelected)
    }

    // MARK: Decisions

    @Test(arguments: [
        (CachePolicy.reloadIgnoringLocalCacheData, true, CacheDecision.load), (.useProtocolCachePolicy, true, .use),
        (.reloadRevalidatingCacheData, true, .revalidate(fields(["If-None-Match": "\"a\""]))),
        (.returnCacheDataElseLoad, true, .use), (.returnCacheDataDontLoad, true, .use),
        (.reloadIgnoringLocalCacheData, false, .load),
        (.useProtocolCachePolicy, false, .revalidate(fields(["If-None-Match": "\"a\""]))),
        (.reloadRevalidatingCacheData, false, .revalidate(fields(["If-None-Match": "\"a\""]))),
        (.returnCacheDataElseLoad, false, .use), (.returnCacheDataDontLoad, false, .use),
    ]) func `Each policy decides about a fresh and a stale response`(
        _ policy: CachePolicy, _ isFresh: Bool, _ decision: CacheDecision
    ) {
        let response = Self.stored(["Cache-Control": "max-age=60", "ETag": "\"a\""])
        #expect(CacheDecision.decide(policy, response, for: HTTPFields(), at: .after(isFresh ? 0 : 90)) == decision)
    }

    @Test(arguments: CachePolicy.allCases) func `Without a stored response only one policy fails`(_ policy: CachePolicy)
    {
        let decision = CacheDecision.decide(policy, nil, for: HTTPFields(), at: now)
        #expect(decision == (policy == .returnCacheDataDontLoad ? .fail : .load))
    }

    @Test func `A stale response is validated by tag, else by date, else loaded`() {
        let both = Self.stored(["ETag": "W/\"a\"", "Last-Modified": Self.hourBefore])
        #expect(both?.conditions == Self.fields(["If-None-Match": "W/\"a\""]))
        let dated = Self.stored(["Last-Modified": Self.hourBefore])
        #expect(dated?.conditions == Self.fields(["If-Modified-Since": Self.hourBefore]))
        let bare = Self.stored([:])
        #expect(CacheDecision.decide(.useProtocolCachePolicy, bare, for: HTTPFields(), at: now) == .load)
        #expect(CacheDecision.decide(.reloadRevalidatingCacheData, bare, for: HTTPFields(), at: now) == .load)
    }

    // MARK: 304

    @Test(arguments: [
        ("\"a\"", "\"a\"", true), ("\"a\"", "\"b\"", false), ("W/\"a\"", "W/\"a\"", true), ("\"a\"", "W/\"a\"", true),
        // A strong tag selects by strong comparison.
        ("W/\"a\"", "\"a\"", false), ("\"a\"", nil, true),
    ]) func `A 304 confirms the response of its tag`(_ own: String, _ told: String?, _ isConfirmed: Bool) throws {
        let response = try #require(Self.stored(["ETag": own]))
        let head = told.map { Self.fields(["ETag": $0]) } ?? HTTPFields()
        let fresh = response.freshened(
            by: head, from: "https://example.com/a", to: HTTPFields(), requestedAt: now, receivedAt: now)
        #expect((fresh != nil) == isConfirmed)
    }

    @Test func `A 304 with another date, or from another URL, confirms nothing`() throws {
        let response = try #require(Self.stored(["Last-Modified": Self.hourBefore]))
        func confirms(_ head: HTTPFields, _ url: String = "https://example.com/a") -> Bool {
            response.freshened(by: head, from: url, to: HTTPFields(), requestedAt: now, receivedAt: now) != nil
        }
        #expect(confirms(HTTPFields()) && confirms(Self.fields(["Last-Modified": Self.hourBefore])))
        #expect(!confirms(Self.fields(["Last-Modified": Self.date])))
        #expect(!confirms(HTTPFields(), "https://example.com/b"))
    }

    static let validators: [(HTTPFields, Bool)] = [
        (fields(["ETag": "\"a\""]), true),
        (fields(["ETag": "W/\"a\"", "Date": date, "Last-Modified": hourBefore]), false),
        (fields(["Date": date, "Last-Modified": hourBefore]), true),
        (fields(["Date": date, "Last-Modified": date]), false), (fields(["Last-Modified": hourBefore]), true),
    ]

    @Test(arguments: validators)
    func `A validator is strong or not, whatever the date of a 304`(_ fields: HTTPFields, _ isStrong: Bool) throws {
        let response = TaskResponse { ($0.statusCode, $0.url, $0.headers) = (200, "https://example.com/a", fields) }
        let stored = try #require(
            CachedResponse(response, fields, to: HTTPFields(), requestedAt: now, receivedAt: now))
        #expect(stored.hasStrongValidator == isStrong)
        let later = Timestamp.after(3600)
        let fresh = stored.freshened(
            by: Self.fields(["Date": Self.hourLater]), from: "https://example.com/a", to: HTTPFields(),
            requestedAt: later, receivedAt: later)
        #expect(fresh?.hasStrongValidator == isStrong)
        #expect(try CachedResponse(atRest: stored.bytesAtRest) == stored)
    }

    @Test func `A 304 freshens the stored fields, but not those of its message`() throws {
        let stored = try #require(
            Self.stored([
                "Cache-Control": "max-age=1", "Age": "1", "ETag": "\"a\"", "Content-Type": "a/b", "X": "old",
                "Date": Self.date,
            ]))
        let head = Self.fields([
            "Cache-Control": "max-age=60", "Content-Type": "c/d", "Content-Length": "0", "X": "new", "ETag": "\"a\"",
        ])
        let later = Timestamp.after(100)
        let fresh = try #require(
            stored.freshened(
                by: head, from: "https://example.com/a", to: HTTPFields(), requestedAt: later, receivedAt: later))
        #expect(!stored.isFresh(for: HTTPFields(), at: later))
        #expect(fresh.isFresh(for: HTTPFields(), at: .after(159)) && !fresh.isFresh(for: HTTPFields(), at: .after(161)))
        #expect(fresh.response.headers["X"] == "new" && fresh.response.headers["Content-Type"] == "a/b")
        #expect(!fresh.response.headers.contains("Content-Length") && !fresh.response.headers.contains("Age"))
        #expect(try CachedResponse(atRest: fresh.bytesAtRest) == fresh)
    }

    @Test func `A response whose 304 varies by everything is used for no request`() throws {
        let stored = try #require(Self.stored(["ETag": "\"a\""]))
        let fresh = try #require(
            stored.freshened(
                by: Self.fields(["Vary": "*"]), from: "https://example.com/a", to: HTTPFields(), requestedAt: now,
                receivedAt: now))
        #expect(stored.matches(HTTPFields()) && !fresh.matches(HTTPFields()))
    }

    // MARK: The key

    static func key(
        _ headers: HTTPFields = HTTPFields(), cookies: [String] = [], credential: String? = nil,
        _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) -> CacheKey {
        var configuration = SessionConfiguration()
        change(&configuration)
        let url = ParsedURL(text: "https://example.com/a", isSecure: true, host: "example.com", port: 443)
        return CacheKey(url, headers, cookies: cookies, credential: credential, configuration)
    }

    @Test func `Requests with different identities have different keys`() {
        let keys = [
            Self.key(), Self.key(Self.fields(["Authorization": "Bearer x"])), Self.key(Self.fields(["Cookie": "a=b"])),
            Self.key(cookies: ["a=b"]), Self.key(credential: "a=b"),
            Self.key { $0.pinnedPublicKeys = ["example.com": ["x"]] },
            // A redirect may lead there.
            Self.key { $0.pinnedPublicKeys = ["other.example": ["x"]] },
            Self.key { $0.proxy = SessionConfiguration.Proxy(kind: .http, host: "p", port: 1) },
            Self.key { $0.proxy = SessionConfiguration.Proxy(kind: .http, host: "p", port: 1, user: "u") },
        ]
        #expect(Set(keys).count == keys.count)
    }

    @Test func `Fields that only Vary may name are not part of the key`() {
        #expect(Self.key(Self.fields(["Accept": "a"])) == Self.key())
    }
}
