/// Messages for one loop, from any thread, in order of arrival.
package final class Inbox<Message: Sendable>: Sendable {
    private let messages = Locked<[Message]>([])
    /// Rung with each message.
    package let bell: Doorbell

    package init(clock: Clock) { bell = Doorbell(clock: clock) }

    package func tell(_ message: Message) {
        messages.withLock { $0.append(message) }
        bell.ring()
    }

    /// All messages since the last call.
    package func take() -> [Message] { messages.withLock { $0.takeAll() } }

    package var isEmpty: Bool { messages.withLock { $0.isEmpty } }
}

extension RangeReplaceableCollection {
    /// Empties the collection, and returns its elements.
    package mutating func takeAll() -> Self {
        defer { self = Self() }
        return self
    }
}
