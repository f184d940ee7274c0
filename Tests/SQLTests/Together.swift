import SQL
import TestSupport

extension Database {
    /// Queues `closures` after one that holds the writing thread, so that they share one commit.
    ///
    /// - Parameter inOrder: Whether each is queued before the next one.
    func together(
        inOrder: Bool = true, _ closures: [@Sendable (Connection) throws -> Void]
    ) async throws -> [Result<Void, any Error>] {
        let gate = Gate()
        return try await withThrowingTaskGroup(of: (Int, Result<Void, any Error>).self) { group in
            group.addTask {
                try await self.write { _ in gate.pass() }
                return (-1, .success(()))
            }
            try await eventually { gate.waiting == 1 }
            for (index, closure) in closures.enumerated() {
                group.addTask {
                    do {
                        return (index, .success(try await self.write(closure)))
                    } catch {
                        return (index, .failure(error))
                    }
                }
                if inOrder { try await eventually { self.waitingWrites == index + 1 } }
            }
            try await eventually { self.waitingWrites == closures.count }
            gate.open()
            var results: [Int: Result<Void, any Error>] = [:]
            for try await (index, result) in group { results[index] = result }
            return closures.indices.compactMap { results[$0] }
        }
    }
}
