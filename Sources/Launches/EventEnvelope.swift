package import Core
package import Wire

extension Wire.Event {
    /// A kept event as it travels: the same in webhooks, pages and streams.
    ///
    /// - Parameter session: The session's identifier.
    package init(_ record: EventRecord, session: String, urls: PublicURLs) {
        self.init()
        seq = record.seq
        type = Kind(rawValue: record.kind.name)
        occurredAt = record.occurredAt.rfc3339
        sessionIdentifier = session
        taskIdentifier = record.taskIdentifier
        clientTaskId = record.clientTaskId
        group = record.group
        data = EventContent.data(record, session: session, urls: urls)
    }
}

/// What events say, and the parts of it.
package enum EventContent {
    static func data(_ record: EventRecord, session: String, urls: PublicURLs) -> JSONText {
        switch record.payload {
        case .question(let question): self.question(question)
        case .resumed(let resumption):
            JSONText(
                EventData.DidResumeAtOffset {
                    $0.fileOffset = resumption.fileOffset
                    $0.expectedTotalBytes = resumption.expectedTotalBytes
                    $0.cause = resumption.cause
                })
        case .finishedDownloading(let content):
            JSONText(
                EventData.DidFinishDownloading {
                    $0.contentURL = urls.content(of: record.taskIdentifier ?? 0, in: session)
                    $0.length = content.length
                    $0.digest = digest(content.digest)
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
                    $0.outcome = TaskOutcome(rawValue: outcome.name)
                    $0.error = result.error.map(error)
                    $0.response = result.response.map(response)
                })
        case .finishedEvents(let launchId): JSONText(EventData.DidFinishEvents { $0.launchId = launchId })
        case .becameInvalid: JSONText(EventData.DidBecomeInvalid())
        }
    }

    package static func question(_ record: QuestionRecord) -> JSONText {
        let question = record.question
        switch (question.kind, question.protectionSpace, question.request) {
        case (.challenge, let space?, _):
            return JSONText(
                AuthenticationChallenge {
                    $0.questionId = record.questionId
                    $0.protectionSpace = protectionSpace(space)
                    $0.taskCount = record.taskCount
                    $0.previousFailureCount = Int64(question.previousFailureCount)
                    $0.proposedCredential = question.proposedUser.map { user in ProposedCredential { $0.user = user } }
                    $0.failureResponse = question.failureResponse.map(response)
                    $0.deadline = record.deadline.rfc3339
                })
        case (.delayedRequest, _, let request?):
            return JSONText(
                DelayedRequest {
                    $0.questionId = record.questionId
                    $0.request = self.request(request)
                    $0.deadline = record.deadline.rfc3339
                })
        default:
            return .emptyObject
        }
    }

    // MARK: Their parts

    package static func digest(_ digest: Core.ContentDigest) -> Wire.ContentDigest {
        Wire.ContentDigest(
            algorithm: Wire.ContentDigest.Algorithm(rawValue: digest.algorithm.rawValue), value: digest.value)
    }

    package static func error(_ error: Core.TaskError) -> Wire.TaskError {
        var wire = Wire.TaskError {
            $0.code = Int64(error.code.rawValue)
            $0.name = error.code.name
            $0.localizedDescription = error.localizedDescription
            $0.failingURL = error.failingURL
            $0.policy = error.policy
            $0.underlying = error.underlying.map { underlying in
                Wire.TaskError.Underlying {
                    $0.domain = underlying.domain
                    $0.code = number(underlying).map { .integer($0) } ?? .string(underlying.code)
                    $0.message = underlying.message
                }
            }
        }
        wire.backgroundTaskCancelledReason = error.backgroundTaskCancelledReason.map(Int64.init)
        wire.networkUnavailableReason = error.networkUnavailableReason.map(Int64.init)
        return wire
    }

    /// libcurl's codes are numbers, the service's own are names.
    private static func number(_ underlying: Core.TaskError.Underlying) -> Int64? {
        underlying.domain == "curl" ? Int64(underlying.code) : nil
    }

    /// The cookies that an origin sets are as good as credentials, and so are hidden.
    package static func response(_ response: Core.TaskResponse) -> Wire.TaskResponse {
        Wire.TaskResponse {
            $0.statusCode = Int64(response.statusCode)
            $0.headers = headers(response.headers.withoutCookies)
            $0.droppedHeaders = response.droppedHeaders ?? []
            $0.mimeType = response.mimeType
            $0.expectedContentLength = response.expectedContentLength
            $0.suggestedFilename = response.suggestedFilename
            $0.url = response.url
        }
    }

    /// Fields as a map: several lines of one name are joined with commas (RFC 9110 section 5.3).
    package static func headers(_ fields: HTTPFields) -> StringMap {
        var names: [String: String] = [:]
        var map = StringMap()
        for field in fields.fields {
            let name = names[field.name.asciiLowercased] ?? field.name
            names[field.name.asciiLowercased] = name
            map[name] = map[name].map { $0 + ", " + field.value } ?? field.value
        }
        return map
    }

    /// A request with its secrets hidden.
    package static func request(_ request: Core.TransferRequest) -> Wire.TransferRequest {
        Wire.TransferRequest(
            url: request.url, method: request.method, headers: headers(request.headers),
            sensitiveHeaders: request.sensitiveHeaders
        ).redacted()
    }

    package static func protectionSpace(_ space: Core.ProtectionSpace) -> Wire.ProtectionSpace {
        Wire.ProtectionSpace(
            host: space.host, port: Int64(space.port), protocol: space.scheme, realm: space.realm,
            authenticationMethod: AuthenticationMethod(rawValue: space.authenticationMethod.rawValue),
            isProxy: space.isProxy, serverPublicKey: space.serverPublicKey)
    }
}

/// ``Wire.TaskMetrics``, written from what is kept: there are many members, and they are the same.
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

extension HTTPFields {
    fileprivate var withoutCookies: HTTPFields {
        HTTPFields(
            fields.map { field in
                let name = field.name.asciiLowercased
                guard name == "set-cookie" || name == "set-cookie2" else { return field }
                return HTTPField(name: field.name, value: Wire.SecretHeaders.placeholder)
            })
    }
}
