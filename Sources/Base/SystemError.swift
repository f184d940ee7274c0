import Glibc

/// A failed system call, with its name and `errno`.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    package let operation: String
    package let errno: Int32

    package init(_ operation: String, errno: Int32) {
        self.operation = operation
        self.errno = errno
    }

    /// Whether the disk or the quota is full.
    package var isFull: Bool { errno == ENOSPC || errno == EDQUOT }

    /// Whether the machine is at fault, not the path that was named: another try may succeed.
    package var isOfMachine: Bool { [EIO, EINTR, EAGAIN, ENOMEM, EMFILE, ENFILE, ESHUTDOWN].contains(errno) }

    /// Whether the disk queue was closed, because the service stops.
    package var isOfShutdown: Bool { errno == ESHUTDOWN }

    package var description: String { "\(operation): \(String(cString: strerror(errno)))" }
}
