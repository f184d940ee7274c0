import Base
import CLinux
import Files
import Glibc

/// What a loop can be told.
enum LoopCommand: Sendable {
    case start(ExchangeRequest, ExchangeMeter)
    case stop(ExchangeID)
    case limit(ExchangeID, Int64?)
    case recorded(ExchangeID, Int64)
    case named(ExchangeID, Exchange.Name, Resolver.News)
    case bodyOpened(ExchangeID, Result<OpenFile, SystemError>)
    case fileOpened(ExchangeID, Result<PartialFile, PartialFile.Failure>)
    case synced(ExchangeID, offset: Int64, sha256: [UInt8]?, SystemError?)
    case closed(ExchangeID, SystemError?)
    case closeConnections(pool: Int64)
    /// Stop everything and end, at the latest at this monotonic time.
    case shutDown(at: Int64)
}

/// Commands for a loop, and the descriptor that wakes it.
final class Mailbox: Sendable {
    let wakeup: Int32
    private let commands = Locked<[LoopCommand]>([])

    init() throws(SystemError) {
        wakeup = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard wakeup >= 0 else { throw SystemError("eventfd", errno: errno) }
    }

    deinit { close(wakeup) }

    func post(_ command: LoopCommand) {
        let wasEmpty = commands.withLock { commands in
            commands.append(command)
            return commands.count == 1
        }
        if wasEmpty { eventfd_write(wakeup, 1) }
    }

    /// All commands since the last call, in order.
    func take() -> [LoopCommand] {
        var count: eventfd_t = 0
        eventfd_read(wakeup, &count)
        return commands.withLock { commands in
            let taken = commands
            commands = []
            return taken
        }
    }
}
