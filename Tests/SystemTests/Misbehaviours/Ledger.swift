import Base
import Testing

/// The misdeeds that ran, and those that the service handled correctly.
final class Ledger: Sendable {
    static let shared = Ledger()
    static let identifiers = (1...75).map { $0 < 10 ? "O-0\($0)" : "O-\($0)" }

    private let entries = Locked<[String: (played: Int, answered: Int)]>([:])

    /// Runs a misdeed and records the result.
    func play(_ misdeed: Misdeed) async throws {
        entries.withLock { $0[misdeed.id, default: (0, 0)].played += 1 }
        if misdeed.needsNames, await !Stage.hasNames.value {
            entries.withLock { $0[misdeed.id]?.played -= 1 }
            try Test.cancel("a mount namespace of one's own is needed (unshare -rm), and openssl")
        }
        let scene = try await Stage.shared().scene(misdeed.configuration)
        try await misdeed.play(scene)
        entries.withLock { $0[misdeed.id, default: (0, 0)].answered += 1 }
    }

    /// Prints the count. A misdeed that did not run is a failure unless a requirement was missing.
    func close() async {
        Stage.close()
        let entries = entries.withLock { $0 }
        let answered = entries.filter { $0.value.answered > 0 && $0.value.answered == $0.value.played }
        let forms = answered.values.reduce(0) { $0 + $1.answered }
        print("origin misbehaviours: \(answered.count) of \(Self.identifiers.count) (in \(forms) forms)")
        let missing = Self.identifiers.filter { entries[$0]?.played ?? 0 == 0 }
        guard !missing.isEmpty else { return }
        print("not played: \(missing.joined(separator: " "))")
        // A run of one subject alone does not require the others.
        let subjects = Misdeed.subjects.filter { $0.contains { entries[$0.id] != nil } }
        let isNameless = await !Stage.hasNames.value
        guard subjects.count == Misdeed.subjects.count, !isNameless else { return }
        Issue.record("not played: \(missing)")
    }
}

/// Closes the ledger after the last test of its suite.
struct LedgerTrait: SuiteTrait, TestScoping {
    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await function()
        await Ledger.shared.close()
    }
}

extension Trait where Self == LedgerTrait {
    static var counted: Self { LedgerTrait() }
}

extension Misdeed {
    /// All misdeeds by subject.
    static let subjects = [framing, ranges, codings, heads, timing, http2, uploads, redirects, tls, dns]
}
