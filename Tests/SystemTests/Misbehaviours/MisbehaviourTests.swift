import Testing

/// Seventy-five misbehaviours of origins, each performed byte for byte against the real service.
///
/// The expected result is given with each; docs/internals/origins.md has the reasons where another result would be
/// plausible.
@Suite(.counted) struct MisbehaviourTests {
    @Test func `The misdeeds cover exactly the ledger's identifiers`() {
        #expect(Set(Misdeed.subjects.joined().map(\.id)) == Set(Ledger.identifiers))
    }

    @Test(arguments: Misdeed.framing)
    func `An origin may frame its responses badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.ranges)
    func `An origin may send another part than requested`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.codings)
    func `An origin may code a body without request`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.heads)
    func `An origin may send unusual heads`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.timing)
    func `An origin may be slow`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.http2)
    func `An origin may end streams and connections early`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.uploads)
    func `An origin may mishandle uploaded bytes`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.redirects)
    func `An origin may redirect badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.tls)
    func `An origin may be untrusted`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.dns)
    func `An origin's name may resolve badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }
}
