import Core

extension Timestamp: Document {
    func write(to text: inout DocumentText) { text.integer(milliseconds) }
}

extension TaskSpecification: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            text.member("kind", kind.rawValue)
            try text.member("request", request)
            text.member("body", body)
            text.member("bodyLength", bodyLength)
            text.member("clientTaskId", clientTaskId)
            text.member("group", group)
            text.member("taskDescription", taskDescription)
            text.member("metadata", metadata)
            text.member("priority", priority)
            try text.member("earliestBeginDate", earliestBeginDate)
            text.member("confirmBeforeStart", confirmBeforeStart)
            text.member("countOfBytesClientExpectsToSend", countOfBytesClientExpectsToSend)
            text.member("countOfBytesClientExpectsToReceive", countOfBytesClientExpectsToReceive)
            try text.member("expectedDigest", expectedDigest)
            text.member("maximumContentLength", maximumContentLength)
            text.member("ifNoneMatch", ifNoneMatch)
            try text.member("acceptableStatusCodes", acceptableStatusCodes)
            text.member("failOnHTTPError", failOnHTTPError)
            try text.rare("destination", destination)
            text.member("traceparent", traceparent)
            text.member("retryOf", retryOf)
        }
    }
}

extension TransferRequest: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            text.member("url", url)
            text.member("method", method)
            try text.member("headers", headers)
            text.member("sensitiveHeaders", sensitiveHeaders)
        }
    }
}

extension HTTPFields: Document {
    func write(to text: inout DocumentText) {
        text.array(fields) { field, text in
            text.object { text in
                text.member("name", field.name)
                text.member("value", field.value)
            }
        }
    }
}

extension StatusRange: Document {
    func write(to text: inout DocumentText) {
        text.object { text in
            text.member("first", first)
            text.member("last", last)
        }
    }
}

extension ContentDigest: Document {
    func write(to text: inout DocumentText) {
        text.object { text in
            text.member("algorithm", algorithm.rawValue)
            text.member("value", value)
        }
    }
}

extension TaskResult: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            try text.rare("error", error)
            try text.member("response", response)
            try text.member("progress", progress)
            text.member("contentLength", contentLength)
            try text.member("contentDigest", contentDigest)
        }
    }
}

extension TaskResponse: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            text.member("statusCode", statusCode)
            try text.member("headers", headers)
            text.member("droppedHeaders", droppedHeaders)
            text.member("mimeType", mimeType)
            text.member("expectedContentLength", expectedContentLength)
            text.member("suggestedFilename", suggestedFilename)
            text.member("url", url)
        }
    }
}

extension TaskProgress: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            try text.member("attempts", attempts)
            try text.member("lastAttempt", lastAttempt)
            try text.rare("resume", resume)
            text.member("durableOffset", durableOffset)
            text.member("bytesFetchedTwice", bytesFetchedTwice)
            try text.member("redirects", redirects)
            text.member("currentURL", currentURL)
            try text.member("transactions", transactions)
            text.member("countOfBytesSent", countOfBytesSent)
            text.member("countOfBytesReceived", countOfBytesReceived)
            text.member("isConfirmed", isConfirmed)
            text.member("restartCause", restartCause)
            text.member("adoptedFile", adoptedFile)
            text.member("diskPauses", diskPauses)
            text.member("diskLosses", diskLosses)
            text.member("uploadURL", uploadURL)
            text.member("uploadVersion", uploadVersion)
            text.member("uploadOffset", uploadOffset)
            text.member("uploadRequest", uploadRequest)
            text.member("credentialsTried", credentialsTried)
            try text.rare("authentication", authentication)
        }
    }
}

extension AttemptLedger: Document {
    func write(to text: inout DocumentText) {
        text.object { text in
            text.member("attempts", attempts)
            text.member("failuresSinceProgress", failuresSinceProgress)
            text.member("highestOffset", highestOffset)
            text.member("statusAttempts", statusAttempts)
            text.member("nameAttempts", nameAttempts)
            text.member("restarts", restarts)
            text.member("digestMismatches", digestMismatches)
            text.member("localFaults", localFaults)
        }
    }
}

extension AttemptRecord: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            text.member("number", number)
            try text.member("startedAt", startedAt)
            try text.member("endedAt", endedAt)
            text.member("offset", offset)
            text.member("statusCode", statusCode)
            try text.rare("error", error)
        }
    }
}

extension RedirectRecord: Document {
    func write(to text: inout DocumentText) {
        text.object { text in
            text.member("statusCode", statusCode)
            text.member("url", url)
        }
    }
}

extension TransactionMetrics: Document {
    func write(to text: inout DocumentText) throws {
        try text.object { text in
            text.member("url", url)
            text.member("statusCode", statusCode)
            text.member("error", error)
            text.member("offset", offset)
            try text.member("fetchStartDate", fetchStartDate)
            try text.member("domainLookupStartDate", domainLookupStartDate)
            try text.member("domainLookupEndDate", domainLookupEndDate)
            try text.member("connectStartDate", connectStartDate)
            try text.member("secureConnectionStartDate", secureConnectionStartDate)
            try text.member("secureConnectionEndDate", secureConnectionEndDate)
            try text.member("connectEndDate", connectEndDate)
            try text.member("requestStartDate", requestStartDate)
            try text.member("requestEndDate", requestEndDate)
            try text.member("responseStartDate", responseStartDate)
            try text.member("responseEndDate", responseEndDate)
            text.member("networkProtocolName", networkProtocolName)
            text.member("negotiatedTLSProtocolVersion", negotiatedTLSProtocolVersion)
            text.member("negotiatedTLSCipherSuite", negotiatedTLSCipherSuite)
            text.member("isReusedConnection", isReusedConnection)
            text.member("isProxyConnection", isProxyConnection)
            text.member("localAddress", localAddress)
            text.member("localPort", localPort)
            text.member("remoteAddress", remoteAddress)
            text.member("remotePort", remotePort)
            text.member("countOfRequestHeaderBytesSent", countOfRequestHeaderBytesSent)
            text.member("countOfRequestBodyBytesSent", countOfRequestBodyBytesSent)
            text.member("countOfResponseHeaderBytesReceived", countOfResponseHeaderBytesReceived)
            text.member("countOfResponseBodyBytesReceived", countOfResponseBodyBytesReceived)
        }
    }
}
