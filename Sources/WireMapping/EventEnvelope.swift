package import Core
package import Wire

/// The wire format of events: the same in webhooks, pages and streams.
package struct EventEnvelope: Sendable {
    let sessionIdentifier: String
    let urls: PublicURLs

    package init(sessionIdentifier: String, urls: PublicURLs) {
        self.sessionIdentifier = sessionIdentifier
        self.urls = urls
    }

    /// A stored event.
    package func event(_ record: EventRecord) -> Event {
        Event {
            $0.seq = record.seq
            $0.type = Event.Kind(record.kind)
            $0.occurredAt = record.occurredAt.rfc3339
            $0.sessionIdentifier = sessionIdentifier
            $0.taskIdentifier = record.taskIdentifier
            $0.clientTaskId = record.clientTaskId
            $0.group = record.group
            $0.data = data(of: record)
        }
    }

    /// A live event: it has no number.
    package func event(_ live: LiveEvent) -> Event {
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

    // MARK: Contents

    private func data(of record: EventRecord) -> JSONText {
        switch record.payload {
        case .question(let question): Self.question(question)
        case .resumed(let resumption): JSONText(resumption)
        case .finishedDownloading(let content, let response):
            JSONText(
                EventData.DidFinishDownloading {
                    $0.contentURL = urls.content(of: record.taskIdentifier ?? 0, in: sessionIdentifier)
                    $0.length = content.length
                    $0.digest = Wire.ContentDigest(content.digest)
                    $0.statusCode = response.map { Int64($0.statusCode) }
                    $0.suggestedFilename = response?.suggestedFilename
                    $0.expiresAt = content.expiresAt?.rfc3339
                })
        case .metrics(let result, let createdAt, let completedAt):
            JSONText(
                MetricsOfTask(
                    interval: TaskInterval {
                        $0.start = createdAt.rfc3339
                        $0.duration = max(.zero, completedAt - createdAt).seconds
                    },
                    progress: result.progress))
        case .completed(let outcome, let result):
            JSONText(
                EventData.DidComplete {
                    $0.outcome = TaskOutcome(outcome)
                    $0.error = result.error.map(Wire.TaskError.init)
                    $0.response = result.response.map(Wire.TaskResponse.init)
                })
        case .stalled(let stall):
            JSONText(
                EventData.DidStall {
                    $0.taskCount = stall.taskCount
                    $0.since = stall.since.rfc3339
                    $0.errors = stall.errors.map(Wire.TaskError.init)
                })
        case .published(let publication): JSONText(EventData.DidPublish(publication, urls))
        case .failedToPublish(let failures): JSONText(EventData.DidFail(failures))
        case .finishedEvents(let launchId): JSONText(EventData.DidFinishEvents { $0.launchId = launchId })
        case .becameInvalid: JSONText(EventData.DidBecomeInvalid())
        }
    }

    static func question(_ record: QuestionRecord) -> JSONText {
        let question = record.question
        switch (question.kind, question.protectionSpace, question.request) {
        case (.challenge, let space?, _):
            return JSONText(
                AuthenticationChallenge {
                    $0.questionId = record.questionId
                    $0.protectionSpace = Wire.ProtectionSpace(space)
                    $0.taskCount = record.taskCount
                    $0.previousFailureCount = Int64(question.previousFailureCount)
                    $0.proposedCredential = question.proposedUser.map { user in ProposedCredential { $0.user = user } }
                    $0.failureResponse = question.failureResponse.map(Wire.TaskResponse.init)
                    $0.deadline = record.deadline.rfc3339
                })
        case (.delayedRequest, _, let request?):
            return JSONText(
                DelayedRequest {
                    $0.questionId = record.questionId
                    $0.request = Wire.TransferRequest(request)
                    $0.deadline = record.deadline.rfc3339
                })
        default:
            return .emptyObject
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
}

/// ``Wire.TaskMetrics``, written directly from the stored form, which has the same members.
private struct MetricsOfTask: JSONWritable {
    let interval: TaskInterval
    let progress: Core.TaskProgress

    func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("taskInterval", interval)
            writer.member("redirectCount", progress.redirects.count)
            writer.member("transactionMetrics", progress.transactions)
        }
    }
}
