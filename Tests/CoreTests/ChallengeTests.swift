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

    @Test
    func `Only supported authentication methods are returned`() {
        #expect(
            Challenge.parse(["Basic, Digest, Bearer, Negotiate, NTLM"]).map(\.method)
                == [.basic, .digest, .bearer, nil, nil])
    }
}
