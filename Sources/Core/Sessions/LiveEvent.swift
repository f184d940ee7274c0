/// An event for open streams only: progress and other messages that must not be queued.
package struct LiveEvent: Sendable {
    package enum Payload: Sendable {
        case didCreate(kind: TaskKind, url: String)
        case isWaitingForConnectivity
        case willRetry(attempt: Int, error: TaskError?, nextAt: Timestamp, offset: Int64)
        case didSendBodyData(sent: Int64, total: Int64, expected: Int64?)
        case didWriteData(written: Int64, total: Int64, expected: Int64?)
    }

    package var payload: Payload
    package var task: TaskID
    package var taskIdentifier: Int64
    package var clientTaskId: String?
    package var group: String?
    package var occurredAt: Timestamp

    /// The approximate size in memory, because origins and apps choose the length of URLs.
    package var size: Int {
        let text =
            switch payload {
            case .didCreate(_, let url): url.utf8.count
            case .willRetry(_, let error, _, _):
                (error?.failingURL?.utf8.count ?? 0) + (error?.localizedDescription.utf8.count ?? 0)
            case .isWaitingForConnectivity, .didSendBodyData, .didWriteData: 0
            }
        return 64 + text + (clientTaskId?.utf8.count ?? 0) + (group?.utf8.count ?? 0)
    }

    package init(
        _ payload: Payload, of task: TaskID, _ number: Int64, _ specification: TaskSpecification, at now: Timestamp
    ) {
        self.payload = payload
        self.task = task
        taskIdentifier = number
        clientTaskId = specification.clientTaskId
        group = specification.group
        occurredAt = now
    }
}
