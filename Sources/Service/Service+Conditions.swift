package import Core
package import Store

extension Service {
    /// What the operator declares for the whole service.
    package func declaredConditions() async throws -> DeclaredConditions { try await store.conditions() }

    /// Declares conditions: transfers that may go on now do, apps whose refresh status changed are told.
    package func setConditions(_ conditions: Conditions, _ refreshStatus: BackgroundRefreshStatus) async throws {
        let aftermath = try await store.setConditions(conditions, refreshStatus, at: clock.now)
        self.conditions.set(conditions, refreshStatus)
        outlet.handle(aftermath)
        inbox.tell(.queued)
    }

    /// Reads what the last run was told.
    func loadConditions() async throws {
        let declared = try await store.conditions()
        conditions.set(declared.conditions, declared.refreshStatus)
    }
}
