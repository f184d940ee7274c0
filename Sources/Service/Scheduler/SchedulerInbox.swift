import Base

/// Messages for the scheduler, from any thread.
package final class SchedulerInbox: Sendable {
    private let messages = Locked<[Scheduler.Message]>([])
    let bell: Doorbell

    init(clock: Clock) { bell = Doorbell(clock: clock) }

    func tell(_ message: Scheduler.Message) {
        messages.withLock { $0.append(message) }
        bell.ring()
    }

    func take() -> [Scheduler.Message] {
        messages.withLock { messages in
            let taken = messages
            messages = []
            return taken
        }
    }

    var isEmpty: Bool { messages.withLock { $0.isEmpty } }
}
