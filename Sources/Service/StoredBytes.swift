import Glibc
import TransferEngine

extension StoredBytes {
    /// A descriptor of the file for whoever sends it, and who closes it; nil for bytes in memory.
    package func descriptor() throws -> Int32? {
        guard case .file(let file) = self else { return nil }
        let descriptor = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw DiskError("fcntl", errno: errno) }
        return descriptor
    }
}
