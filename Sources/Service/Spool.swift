import Base
import Glibc
import TransferEngine

/// Bytes that wait until all of them are known: in memory while they are few, then in a file without a name, which the
/// system forgets with its last descriptor.
package struct Spool: Sendable {
    private static let memoryLimit = 64 * 1024

    private let disk: DiskQueue
    /// Where the file stands for the moment in which it has a name.
    private let path: String
    private var memory: [UInt8] = []
    private var file: OpenFile?
    private var written: Int64 = 0

    init(_ disk: DiskQueue, path: String) {
        self.disk = disk
        self.path = path
    }

    package mutating func append(_ bytes: [UInt8]) async throws {
        memory += bytes
        if memory.count >= Self.memoryLimit { try await flush() }
    }

    /// All that was appended.
    package consuming func finish() async throws -> (bytes: StoredBytes, length: Int64) {
        guard file != nil else { return (.bytes(memory), Int64(memory.count)) }
        try await flush()
        guard let file else { throw DiskError("open", errno: ENOENT) }
        return (.file(file), written)
    }

    private mutating func flush() async throws {
        let open: OpenFile
        if let file { open = file } else { open = try await disk.openUnnamed(path) }
        file = open
        try await disk.write(memory, to: open, at: written)
        written += Int64(memory.count)
        memory.removeAll(keepingCapacity: true)
    }
}

extension Service {
    /// A place for an answer that grows while its request is read.
    package func makeSpool() -> Spool {
        Spool(engine.disk, path: folder.absolute("partial/\(Identifier.make(prefix: "spool_"))"))
    }
}
