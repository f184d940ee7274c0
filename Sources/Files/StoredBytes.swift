package import Base
import Glibc

/// Bytes ready to be served: from memory, or from an open file.
package enum StoredBytes: Sendable {
    case bytes([UInt8])
    case file(OpenFile)

    /// A new descriptor of the file, which the caller sends from and closes; `nil` for bytes in memory.
    package func descriptor() throws(SystemError) -> Int32? {
        guard case .file(let file) = self else { return nil }
        let descriptor = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw SystemError("fcntl", errno: errno) }
        return descriptor
    }
}
