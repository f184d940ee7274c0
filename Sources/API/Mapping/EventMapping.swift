import Core
import Launches
import Service
import Wire

/// Writes events as clients read them.
struct EventEnvelope: Sendable {
    let sessionIdentifier: String
    let urls: PublicURLs

    /// A kept event: as in webhooks.
    func event(_ record: EventRecord) -> Event { Event(record, session: sessionIdentifier, urls: urls) }

    /// A message that is not kept: it has no number.
    func event(_ live: LiveEvent) -> Event {
        let (type, data) = Self.content(of: live.payload)
        return Event {
            $0.type = type
            $0.occurredAt = live.occurredAt.rfc3339
            $0.sessionIdentifier = sessionIdentifier
            $0.taskIdentifier = live.taskIdentifier
            $0.clientTaskId = live.clientTaskId
            $0.group = live.group
            $0.data = data
        }
    }

    private static func content(of payload: LiveEvent.Payload) -> (Event.Kind, JSONText) {
        switch payload {
        case .didCreate(let kind, let url):
            (
                .taskDidCreate,
                JSONText(
                    EventData.DidCreate {
                        $0.kind = kind == .upload ? .upload : .download
                        $0.url = url
                    })
            )
        case .isWaitingForConnectivity: (.taskIsWaitingForConnectivity, .emptyObject)
        case .willRetry(let attempt, let error, let nextAt, let offset):
            (
                .taskWillRetry,
                JSONText(
                    EventData.WillRetry {
                        $0.attempt = Int64(attempt)
                        $0.error = error.map(Wire.TaskError.init)
                        $0.nextAt = nextAt.rfc3339
                        $0.offset = offset
                    })
            )
        case .didSendBodyData(let sent, let total, let expected):
            (
                .taskDidSendBodyData,
                JSONText(
                    EventData.DidSendBodyData {
                        $0.bytesSent = sent
                        $0.totalBytesSent = total
                        $0.totalBytesExpectedToSend = expected
                    })
            )
        case .didWriteData(let written, let total, let expected):
            (
                .taskDidWriteData,
                JSONText(
                    EventData.DidWriteData {
                        $0.bytesWritten = written
                        $0.totalBytesWritten = total
                        $0.totalBytesExpectedToWrite = expected
                    })
            )
        }
    }

    /// A page of the log, which ends where the answer is long enough.
    func page(_ page: Core.EventPage) -> Wire.EventPage<JSONText> {
        var items = PageItems()
        let isWhole = page.events.allSatisfy { items.add(event($0)) }
        return Wire.EventPage(
            items: items.texts, lastSeq: page.lastSeq, acknowledgedSeq: page.acknowledgedSeq,
            finished: page.isFinished && isWhole)
    }
}
