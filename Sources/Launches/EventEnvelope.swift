package import Core
package import Wire

extension Wire.Event {
    /// A kept event as it travels: the same in webhooks, pages and streams.
    ///
    /// - Parameter session: The session's identifier.
    package init(_ record: EventRecord, session: String, urls: PublicURLs) {
        self.init(
            seq: record.seq, type: Kind(rawValue: record.kind.name), occurredAt: record.occurredAt.rfc3339,
            sessionIdentifier: session, taskIdentifier: record.taskIdentifier, clientTaskId: record.clientTaskId,
            group: record.group, data: EventContent.data(record, session: session, urls: urls))
    }
}

/// What events say, and the parts of it.
package enum EventContent {
    static func data(_ record: EventRecord, session: String, urls: PublicURLs) -> JSONText {
        switch record.payload {
        case .question(let question): self.question(question)
        case .resumed(let resumption):
            JSONText(
                EventData.DidResumeAtOffset(
                    fileOffset: resumption.fileOffset, expectedTotalBytes: resumption.expectedTotalBytes,
                    cause: resumption.cause))
        case .finishedDownloading(let content):
            JSONText(
                EventData.DidFinishDownloading(
                    contentURL: urls.content(of: record.taskIdentifier ?? 0, in: session), length: content.length,
                    digest: digest(content.digest), expiresAt: content.expiresAt?.rfc3339))
        case .metrics(let result, let createdAt, let completedAt):
            JSONText(
                Wire.TaskMetrics(
                    taskInterval: TaskInterval(
                        start: createdAt.rfc3339, duration: max(.zero, completedAt - createdAt).seconds),
                    redirectCount: Int64(result.progress.redirects.count),
                    transactionMetrics: result.progress.transactions.map(transaction)))
        case .completed(let outcome, let result):
            JSONText(
                EventData.DidComplete(
                    outcome: TaskOutcome(rawValue: outcome.name), error: result.error.map(error),
                    response: result.response.map(response)))
        case .finishedEvents(let launchId): JSONText(EventData.DidFinishEvents(launchId: launchId))
        case .becameInvalid: JSONText(EventData.DidBecomeInvalid())
        }
    }

    package static func question(_ record: QuestionRecord) -> JSONText {
        let question = record.question
        switch (question.kind, question.protectionSpace, question.request) {
        case (.challenge, let space?, _):
            return JSONText(
                AuthenticationChallenge(
                    questionId: record.questionId, protectionSpace: protectionSpace(space),
                    taskCount: record.taskCount,
                    previousFailureCount: Int64(question.previousFailureCount),
                    proposedCredential: question.proposedUser.map { ProposedCredential(user: $0) },
                    failureResponse: question.failureResponse.map(response), deadline: record.deadline.rfc3339))
        case (.delayedRequest, _, let request?):
            return JSONText(
                DelayedRequest(
                    questionId: record.questionId, request: self.request(request), deadline: record.deadline.rfc3339))
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
        var wire = Wire.TaskError(
            code: Int64(error.code.rawValue), name: error.code.name, localizedDescription: error.localizedDescription,
            failingURL: error.failingURL, policy: error.policy,
            underlying: error.underlying.map { underlying in
                Wire.TaskError.Underlying(
                    domain: underlying.domain,
                    code: number(underlying).map { .integer($0) } ?? .string(underlying.code),
                    message: underlying.message)
            })
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
        Wire.TaskResponse(
            statusCode: Int64(response.statusCode), headers: headers(response.headers.withoutCookies),
            droppedHeaders: response.droppedHeaders ?? [], mimeType: response.mimeType,
            expectedContentLength: response.expectedContentLength, suggestedFilename: response.suggestedFilename,
            url: response.url)
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

    private static func transaction(_ metrics: Core.TransactionMetrics) -> Wire.TransactionMetrics {
        Wire.TransactionMetrics(
            url: metrics.url, statusCode: metrics.statusCode.map(Int64.init), error: metrics.error,
            offset: metrics.offset, fetchStartDate: metrics.fetchStartDate.rfc3339,
            domainLookupStartDate: metrics.domainLookupStartDate?.rfc3339,
            domainLookupEndDate: metrics.domainLookupEndDate?.rfc3339,
            connectStartDate: metrics.connectStartDate?.rfc3339,
            secureConnectionStartDate: metrics.secureConnectionStartDate?.rfc3339,
            secureConnectionEndDate: metrics.secureConnectionEndDate?.rfc3339,
            connectEndDate: metrics.connectEndDate?.rfc3339, requestStartDate: metrics.requestStartDate?.rfc3339,
            requestEndDate: metrics.requestEndDate?.rfc3339, responseStartDate: metrics.responseStartDate?.rfc3339,
            responseEndDate: metrics.responseEndDate?.rfc3339, networkProtocolName: metrics.networkProtocolName,
            negotiatedTLSProtocolVersion: metrics.negotiatedTLSProtocolVersion,
            negotiatedTLSCipherSuite: metrics.negotiatedTLSCipherSuite,
            isReusedConnection: metrics.isReusedConnection, isProxyConnection: metrics.isProxyConnection,
            localAddress: metrics.localAddress, localPort: metrics.localPort.map(Int64.init),
            remoteAddress: metrics.remoteAddress, remotePort: metrics.remotePort.map(Int64.init),
            countOfRequestHeaderBytesSent: metrics.countOfRequestHeaderBytesSent,
            countOfRequestBodyBytesSent: metrics.countOfRequestBodyBytesSent,
            countOfResponseHeaderBytesReceived: metrics.countOfResponseHeaderBytesReceived,
            countOfResponseBodyBytesReceived: metrics.countOfResponseBodyBytesReceived)
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
