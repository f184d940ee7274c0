import Base
package import Core
import Store
package import Transfers

extension Service {
    /// Declares the conditions of the whole service. Transfers and fetches that wait for them are checked again.
    ///
    /// - Parameter seen: The declaration that must be current, nil for any.
    /// - Throws: ``DomainError/revisionMismatch`` if another one is current.
    package func declareConditions(
        _ declared: Conditions, _ refreshStatus: BackgroundRefreshStatus,
        replacing seen: (conditions: Conditions, refreshStatus: BackgroundRefreshStatus)? = nil
    ) async throws {
        let expected = seen.map { seen in
            var expected = DeclaredConditions()
            (expected.conditions, expected.refreshStatus) = seen
            return expected
        }
        outlet.handle(try await store.apps.setConditions(declared, refreshStatus, replacing: expected, at: clock.now))
        try await loadConditions()
        inbox.tell(.queued)
    }

    /// The declared conditions: from memory, or from the store if other nodes may have declared others.
    package func declaredConditions() async throws -> CurrentConditions {
        if isShared { try await loadConditions() }
        return conditions
    }

    /// Loads the declared conditions from the store into memory.
    func loadConditions() async throws {
        let declared = try await store.apps.conditions()
        conditions.set(declared.conditions, declared.refreshStatus)
    }
}
