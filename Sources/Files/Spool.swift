import Base
import Glibc

/// Bytes collected until all are known: a few in memory, more in an unlinked file, which the system frees with its last
/// descriptor.
package struct Spool: Sendable {
    private static let memoryLimit = 64 * 1024

    private let folder: DataFolder
    private var memory: [UInt8] = []
    private var file: OpenFile?
    private var written: Int64 = 0

    package init(in folder: DataFolder) { self.folder = folder }

    package mutating func append(_ bytes: [UInt8]) async throws {
        memory += bytes
        if memory.count >= Self.memoryLimit { try await flush() }
    }

    /// All appended bytes.
    package consuming func finish() async throws -> (bytes: StoredBytes, length: Int64) {
        guard file != nil else { return (.bytes(memory), Int64(memory.count)) }
        try await flush()
        guard let file else { throw SystemError("open", errno: ENOENT) }
        return (.file(file), written)
    }

    private mutating func flush() async throws {
        let open: OpenFile
        if let file { open = file } else { open = try await openUnnamed() }
        file = open
        try await folder.disk.write(memory, to: open, at: written)
        written += Int64(memory.count)
        memory.removeAll(keepingCapacity: true)
    }

    /// The file has a name only until it is unlinked.
    private func openUnnamed() async throws -> OpenFile {
        let path = folder.absolute(folder.partial(Identifier.make(prefix: "spool_")))
        return try await folder.disk.openUnnamed(path)
    }
}
