import Base
import Store
import Transfers

/// The store's secrets were sealed with another master key than the given one.
package struct WrongMasterKey: Error {
    package init() {}
}

extension Service {
    /// - Returns: Whether the secrets of the store are lost.
    func checkMasterKey(acceptsNew: Bool) async throws -> Bool {
        guard try await !store.upkeep.hasRightKey() else {
            try await store.upkeep.keepKeyCheck()
            return false
        }
        guard acceptsNew else { throw WrongMasterKey() }
        log.warning("the master key is new: secrets that were sealed with another key are lost")
        try await store.upkeep.loseSecrets(at: clock.now) { RandomBytes.make(32) }
        return true
    }
}
