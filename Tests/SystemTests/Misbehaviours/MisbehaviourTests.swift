import Testing

/// Seventy-five ways in which origins misbehave, each played byte for byte against the real service.
///
/// What is owed for each stands beside it; ARCHITECTURE.md has the reasons where another answer would be expected.
@Suite(.counted) struct MisbehaviourTests {
    @Test func `every identifier has its misdeeds, and no other`() {
        #expect(Set(Misdeed.subjects.joined().map(\.id)) == Set(Ledger.identifiers))
    }

    @Test(arguments: Misdeed.framing)
    func `an origin that frames its answers badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.ranges)
    func `an origin that gives another part than asked for`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.codings)
    func `an origin that codes what nobody wanted coded`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.heads)
    func `an origin whose heads are strange`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.timing)
    func `an origin that takes its time`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.http2)
    func `an origin that ends streams and connections early`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.uploads)
    func `an origin that takes our bytes badly`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.redirects)
    func `an origin that sends us elsewhere`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.tls)
    func `an origin that cannot be trusted`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }

    @Test(arguments: Misdeed.dns)
    func `an origin whose name leads elsewhere`(_ misdeed: Misdeed) async throws {
        try await Ledger.shared.play(misdeed)
    }
}
