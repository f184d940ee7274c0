import Base
package import Core
package import Files
import Glibc
import Store

extension Service {
    /// A finished task's bytes.
    ///
    /// - Throws: ``DomainError/notFound`` before there are any; ``DomainError/contentExpired`` afterwards.
    package func content(of task: TaskRecord) async throws -> (record: ContentRecord, bytes: StoredBytes) {
        let location = try await store.content(of: task.id)
        guard !location.record.isExpired, let place = location.place else { throw DomainError.contentExpired }
        do {
            return (location.record, try await open(place))
        } catch let error as SystemError where error.errno == ENOENT {
            throw DomainError.contentExpired
        }
    }

    package func claimContent(of task: TaskID) async throws {
        outlet.handle(try await store.claimContent(of: task, at: clock.now))
    }

    /// A place for an answer that grows while its request is read.
    package func makeSpool() -> Spool { Spool(in: folder) }

    func open(_ place: BodyLocation.Place) async throws -> StoredBytes {
        switch place {
        case .bytes(let bytes): .bytes(bytes)
        case .file(let path): .file(try await folder.open(path))
        }
    }
}
