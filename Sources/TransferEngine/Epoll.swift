import Base
import CLinux
import Glibc

/// Readiness of many descriptors. Corresponds to an epoll descriptor; used by one thread.
final class Epoll {
    struct Interest: OptionSet, Sendable {
        let rawValue: UInt32
        static let read = Interest(rawValue: EPOLLIN.rawValue)
        static let write = Interest(rawValue: EPOLLOUT.rawValue)
        static let failed = Interest(rawValue: EPOLLERR.rawValue | EPOLLHUP.rawValue)
    }

    private let descriptor: Int32
    private let events: UnsafeMutablePointer<epoll_event>
    private static let capacity = 256

    init() throws(SystemError) {
        descriptor = epoll_create1(Int32(EPOLL_CLOEXEC))
        guard descriptor >= 0 else { throw SystemError("epoll_create1", errno: errno) }
        events = .allocate(capacity: Self.capacity)
    }

    deinit {
        close(descriptor)
        events.deallocate()
    }

    func watch(_ socket: Int32, _ interest: Interest) {
        var event = epoll_event(events: interest.rawValue, data: epoll_data_t(fd: socket))
        // A descriptor number may have been closed and reused: only the kernel knows whether it is watched.
        if epoll_ctl(descriptor, EPOLL_CTL_MOD, socket, &event) != 0, errno == ENOENT {
            let code = epoll_ctl(descriptor, EPOLL_CTL_ADD, socket, &event)
            precondition(code == 0, "epoll_ctl: \(errno)")
        }
    }

    func forget(_ socket: Int32) {
        var event = epoll_event()
        _ = epoll_ctl(descriptor, EPOLL_CTL_DEL, socket, &event)
    }

    /// Waits for at most `milliseconds` (without limit if negative) and passes ready descriptors to `handle`.
    func wait(milliseconds: Int32, _ handle: (Int32, Interest) -> Void) {
        let count = epoll_wait(descriptor, events, Int32(Self.capacity), milliseconds)
        guard count > 0 else { return }
        for index in 0..<Int(count) { handle(events[index].data.fd, Interest(rawValue: events[index].events)) }
    }
}

@available(*, unavailable)
extension Epoll: Sendable {}
