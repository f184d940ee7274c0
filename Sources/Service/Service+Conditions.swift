import Base
package import Core
import Store
package import Transfers

extension Service {
    /// Declares the conditions of the whole service; transfers and fetches that wait for them are looked at again.
    ///
    /// - Parameter seen: What must be declared now, nil for anything.
    /// - Throws: ``DomainError/revisionMismatch`` when something else is.
    package func declareConditions(
        _ declared: Conditions, _ refreshStatus: BackgroundRefreshStatus,
        replacing seen: (conditions: Conditions, refreshStatus: BackgroundRefreshStatus)? = nil
    ) async throws {
        let expected = seen.map { seen in
            var expected = DeclaredConditions()
            (expected.conditions, expected.refreshStatus) = seen
            return expected
        }
        outlet.handle(try await store.setConditions(declared, refreshStatus, replacing: expected, at: clock.now))
        try await loadConditions()
        inbox.tell(.queued)
    }

    /// The declared conditions, as they are in memory; where other nodes may have declared others, as they are stored.
    package func declaredConditions() async throws -> CurrentConditions {
        if isShared { try await loadConditions() }
        return conditions
    }

    /// Takes the declared conditions from the store into memory.
    func loadConditions() async throws {
        let declared = try await store.conditions()
        conditions.set(declared.conditions, declared.refreshStatus)
    }
}
