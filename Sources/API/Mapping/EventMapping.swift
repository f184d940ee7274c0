import Core
import Service
import Wire

/// Writes events as clients read them.
struct EventEnvelope: Sendable {
    let sessionIdentifier: String
    /// The service's public URL, without a slash at its end: the base of the URLs in events.
    let publicURL: String

    /// A kept event.
    func event(_ record: EventRecord) -> Event {
        Event(
            seq: record.seq, type: Event.Kind(rawValue: record.kind.name), occurredAt: record.occurredAt.rfc3339,
            sessionIdentifier: sessionIdentifier, taskIdentifier: record.taskIdentifier,
            clientTaskId: record.clientTaskId, group: record.group, data: data(of: record))
    }

    /// A message that is not kept: it has no number.
    func event(_ live: LiveEvent) -> Event {
        let (type, data) = Self.content(of: live.payload)
        return Event(
            seq: nil, type: type, occurredAt: live.occurredAt.rfc3339, sessionIdentifier: sessionIdentifier,
            taskIdentifier: live.taskIdentifier, clientTaskId: live.clientTaskId, group: live.group, data: data)
    }

    private func data(of record: EventRecord) -> JSONText {
        switch record.payload {
        case .question(let question): question.eventData
        case .resumed(let resumption):
            JSONText(
                EventData.DidResumeAtOffset(
                    fileOffset: resumption.fileOffset, expectedTotalBytes: resumption.expectedTotalBytes,
                    cause: resumption.cause))
        case .finishedDownloading(let content):
            JSONText(
                EventData.DidFinishDownloading(
                    contentURL: contentURL(ofTask: record.taskIdentifier ?? 0), length: content.length,
                    digest: Wire.ContentDigest(content.digest), expiresAt: content.expiresAt?.rfc3339))
        case .metrics(let result, let createdAt, let completedAt):
            JSONText(TaskMetrics(result, createdAt: createdAt, completedAt: completedAt))
        case .completed(let outcome, let result):
            JSONText(
                EventData.DidComplete(
                    outcome: TaskOutcome(rawValue: outcome.name), error: result.error.map(Wire.TaskError.init),
                    response: result.response.map(Wire.TaskResponse.init)))
        case .finishedEvents(let launchId): JSONText(EventData.DidFinishEvents(launchId: launchId))
        case .becameInvalid: JSONText(EventData.DidBecomeInvalid())
        }
    }

    private func contentURL(ofTask number: Int64) -> String {
        "\(publicURL)/v1/sessions/\(sessionIdentifier)/tasks/\(number)/content"
    }

    private static func content(of payload: LiveEvent.Payload) -> (Event.Kind, JSONText) {
        switch payload {
        case .didCreate(let kind, let url):
            (
                .taskDidCreate,
                JSONText(EventData.DidCreate(kind: kind == .upload ? .upload : .download, url: url))
            )
        case .isWaitingForConnectivity: (.taskIsWaitingForConnectivity, .emptyObject)
        case .willRetry(let attempt, let error, let nextAt, let offset):
            (
                .taskWillRetry,
                JSONText(
                    EventData.WillRetry(
                        attempt: Int64(attempt), error: error.map(Wire.TaskError.init), nextAt: nextAt.rfc3339,
                        offset: offset))
            )
        case .didSendBodyData(let sent, let total, let expected):
            (
                .taskDidSendBodyData,
                JSONText(
                    EventData.DidSendBodyData(
                        bytesSent: sent, totalBytesSent: total, totalBytesExpectedToSend: expected))
            )
        case .didWriteData(let written, let total, let expected):
            (
                .taskDidWriteData,
                JSONText(
                    EventData.DidWriteData(
                        bytesWritten: written, totalBytesWritten: total, totalBytesExpectedToWrite: expected))
            )
        }
    }

    /// A page of the log.
    func page(_ page: Core.EventPage) -> Wire.EventPage {
        Wire.EventPage(
            items: page.events.map(event), lastSeq: page.lastSeq, acknowledgedSeq: page.acknowledgedSeq,
            finished: page.isFinished)
    }
}
