import Base
package import Core
import Glibc
import Store
package import TransferEngine

/// Bytes ready to be served: from memory, or from an open file.
package enum StoredBytes: Sendable {
    case bytes([UInt8])
    case file(OpenFile)
}

extension Service {
    /// A finished task's bytes.
    ///
    /// - Throws: ``DomainError/notFound`` before there are any; ``DomainError/contentExpired`` afterwards.
    package func content(of task: TaskRecord) async throws -> (record: ContentRecord, bytes: StoredBytes) {
        let location = try await store.content(of: task.id)
        guard !location.record.isExpired, let place = location.place else { throw DomainError.contentExpired }
        do {
            return (location.record, try await open(place))
        } catch let error as DiskError where error.errno == ENOENT {
            throw DomainError.contentExpired
        }
    }

    package func claimContent(of task: TaskID) async throws {
        outlet.handle(try await store.claimContent(of: task, at: clock.now))
    }

    func open(_ place: BodyLocation.Place) async throws -> StoredBytes {
        switch place {
        case .bytes(let bytes): .bytes(bytes)
        case .file(let path): .file(try await engine.disk.open(folder.absolute(path)))
        }
    }
}
