import Testing

/// Seventy-five ways in which origins misbehave, each played byte for byte against the real service.
///
/// What is owed for each stands beside it; docs/internals/origins.md has the reasons where another answer would be expected.
@Suite(.counted) struct MisbehaviourTests {
    @Test func `Every identifier has its misdeeds, and no other`() {
        #expect(Set(Misdeed.subjects.joined().map(\.id)) == Set(Ledger.identifiers))
    }

    @Test(arguments: Misdeed.framing)
    func `An origin may frame its answers badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.ranges)
    func `An origin may give another part than asked for`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.codings)
    func `An origin may code what nobody wanted coded`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.heads)
    func `An origin may send strange heads`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.timing)
    func `An origin may take its time`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.http2)
    func `An origin may end streams and connections early`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.uploads)
    func `An origin may take our bytes badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.redirects)
    func `An origin may send us elsewhere`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.tls)
    func `An origin may not be worth our trust`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.dns)
    func `An origin's name may lead elsewhere`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }
}
