import Glibc

/// A call to the system that failed, with its name and `errno`.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    package let operation: String
    package let errno: Int32

    package init(_ operation: String, errno: Int32) {
        self.operation = operation
        self.errno = errno
    }

    /// The disk or the quota is full.
    package var isFull: Bool { errno == ENOSPC || errno == EDQUOT }

    /// The queue of the disk was closed, because the service stops.
    package var isOfShutdown: Bool { errno == ESHUTDOWN }

    package var description: String { "\(operation): \(String(cString: strerror(errno)))" }
}
