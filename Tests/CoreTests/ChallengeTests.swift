import Testing

@testable import Core

struct ChallengeTests {
    private func parse(_ values: String...) -> [String] {
        Challenge.parse(values).map { "\($0.scheme)|\($0.realm ?? "-")" }
    }

    @Test
    func `A challenge has a scheme and a realm`() {
        #expect(parse("Basic realm=\"simple\"") == ["basic|simple"])
        #expect(parse("BASIC realm=simple") == ["basic|simple"])
        #expect(parse("Bearer") == ["bearer|-"])
        #expect(parse("Basic charset=\"UTF-8\", REALM=\"late\"") == ["basic|late"])
    }

    @Test
    func `Several challenges are read from one line or many`() {
        #expect(
            parse("Digest realm=\"a\", nonce=\"n\", qop=\"auth, auth-int\", Basic realm=\"b\"")
                == ["digest|a", "basic|b"])
        #expect(parse("Negotiate", "Basic realm=\"b\"") == ["negotiate|-", "basic|b"])
        #expect(parse("Negotiate TlRMTVNTUAA=, Basic realm=b") == ["negotiate|-", "basic|b"])
    }

    @Test
    func `A realm may contain commas, quotes and escapes`() {
        #expect(parse(#"Basic realm="a, Digest realm=x""#) == ["basic|a, Digest realm=x"])
        #expect(parse(#"Basic realm="a \"b\" \\ c""#) == [#"basic|a "b" \ c"#])
        #expect(parse(#"Basic realm="""#) == ["basic|"])
        #expect(parse(#"Basic realm="=""#) == ["basic|="])
    }

    @Test
    func `White space may surround the equals sign`() {
        #expect(parse("Basic realm = \"x\"") == ["basic|x"])
        #expect(parse("Digest qop=\"auth\" ,\trealm = \"x\"") == ["digest|x"])
        #expect(parse("Basic\trealm=\"x\"") == ["basic|x"])
    }

    @Test
    func `Unreadable challenges are skipped`() {
        #expect(parse("") == [])
        #expect(parse(", ,") == [])
        #expect(parse("realm=\"x\"") == [])
        #expect(parse("Basic realm=\"open") == ["basic|\"open"])
        #expect(parse("=") == [])
    }

    @Test(
        arguments: [
            ("algorithm=SHA-256, qop=\"auth,auth-int\"", true, true), ("algorithm=md5-sess", true, true),
            ("qop=auth-int", false, true), ("qop=\"auth-int\", algorithm=MD5", false, true),
            ("algorithm=SHA-512-256, qop=\"auth\"", false, false), ("algorithm=\"x\"", false, false),
        ] as [(String, Bool, Bool)])
    func `A digest that cannot be computed is no offer`(_ terms: String, _ withBody: Bool, _ without: Bool) {
        for (hasBody, isOffered) in [(true, withBody), (false, without)] {
            let first = Challenge.answerable(
                ["Digest realm=\"d\", \(terms), nonce=\"n\"", "Basic realm=\"b\""], withBody: hasBody)
            let expected: [ProtectionSpace.Method?] = isOffered ? [.digest, .basic] : [.basic]
            #expect(first.map(\.method) == expected)
        }
        // libcurl reads the first digest challenge alone.
        let both = ["Digest realm=\"d\", algorithm=SHA-512-256", "Digest realm=\"d\", algorithm=MD5"]
        #expect(Challenge.answerable(both, withBody: false).isEmpty)
        #expect(Challenge.answerable(["Negotiate", "Bearer"], withBody: false).map(\.method) == [.bearer])
    }

    @Test
    func `Only supported authentication methods are returned`() {
        #expect(
            Challenge.parse(["Basic, Digest, Bearer, Negotiate, NTLM"]).map(\.method)
                == [.basic, .digest, .bearer, nil, nil])
    }
}
