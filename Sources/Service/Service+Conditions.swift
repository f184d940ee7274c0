import Base
package import Core
import Store

extension Service {
    /// Declares the conditions of the whole service; transfers and fetches that wait for them are looked at again.
    package func declareConditions(_ declared: Conditions, _ refreshStatus: BackgroundRefreshStatus) async throws {
        outlet.handle(try await store.setConditions(declared, refreshStatus, at: clock.now))
        try await loadConditions()
        inbox.tell(.queued)
        guard refreshStatus != .available else { return }
        var cursor: Int64 = 0
        while true {
            let apps = try await store.apps(after: cursor, limit: 100)
            for app in apps { try await cancelDiscretionaryTasks(unlessAvailableTo: app) }
            guard apps.count == 100, let last = apps.last else { return }
            cursor = last.id.rawValue
        }
    }

    /// Takes the declared conditions from the store into memory.
    func loadConditions() async throws {
        let declared = try await store.conditions()
        conditions.set(declared.conditions, declared.refreshStatus)
    }
}
