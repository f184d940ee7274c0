import Base
import CLinux
import Files
import Glibc

/// The commands of a loop.
enum LoopCommand: Sendable {
    case start(ExchangeRequest, ExchangeMeter)
    case tell(ExchangeID, ExchangeNews)
    case closeConnections(pool: Int64)
    /// A buffer was returned.
    case shareBuffers
    /// Stop everything and end by this monotonic time.
    case shutDown(at: Int64)
}

/// The messages to an exchange, which may have ended already.
enum ExchangeNews: Sendable {
    case stop
    case limit(Int64?)
    case recorded(Int64)
    case maximumUnrecorded(Int64)
    /// Content after this offset is not wanted.
    case end(Int64)
    case named(Exchange.Name, Resolver.News)
    case bodyOpened(Result<OpenedBody, SystemError>)
    case bodyRead(ReadAhead.Arrival)
    case fileOpened(PartialFileOpening.Outcome)
    case file(PartialFile.News)
}

/// Commands for a loop, and the descriptor that wakes it.
final class CommandQueue: Sendable {
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

    func post(_ news: ExchangeNews, to exchange: ExchangeID) { post(.tell(exchange, news)) }

    /// All commands since the last call, in order.
    func take() -> [LoopCommand] {
        var count: eventfd_t = 0
        eventfd_read(wakeup, &count)
        return commands.withLock { $0.takeAll() }
    }
}
