package import Core
package import Notation

extension Timestamp: Document {
    /// At rest a number, which is read faster.
    package func write(to writer: inout JSONWriter) {
        switch writer.purpose {
        case .rest: writer.integer(milliseconds)
        case .travel: writer.string(rfc3339)
        }
    }
}

extension TaskSpecification: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("kind", kind.rawValue)
            writer.member("request", request)
            writer.member("body", body)
            writer.member("bodyLength", bodyLength)
            writer.member("clientTaskId", clientTaskId)
            writer.member("group", group)
            writer.member("taskDescription", taskDescription)
            writer.member("metadata", metadata)
            writer.member("priority", priority)
            writer.member("earliestBeginDate", earliestBeginDate)
            writer.member("confirmBeforeStart", confirmBeforeStart)
            writer.member("countOfBytesClientExpectsToSend", countOfBytesClientExpectsToSend)
            writer.member("countOfBytesClientExpectsToReceive", countOfBytesClientExpectsToReceive)
            writer.member("expectedDigest", expectedDigest)
            writer.member("maximumContentLength", maximumContentLength)
            writer.member("ifNoneMatch", ifNoneMatch)
            writer.member("acceptableStatusCodes", acceptableStatusCodes)
            writer.member("failOnHTTPError", failOnHTTPError)
            writer.member("destination", destination)
            writer.member("traceparent", traceparent)
            writer.member("retryOf", retryOf)
        }
    }
}

extension TransferRequest: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.member("method", method)
            writer.member("headers", headers)
            writer.member("sensitiveHeaders", sensitiveHeaders)
        }
    }
}

extension HTTPFields: Document {
    package func write(to writer: inout JSONWriter) {
        fields.write(to: &writer)
    }
}

extension HTTPField: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("name", name)
            writer.member("value", value)
        }
    }
}

extension StatusRange: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("first", first)
            writer.member("last", last)
        }
    }
}

extension ContentDigest: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("algorithm", algorithm.rawValue)
            writer.member("value", value)
        }
    }
}

extension TaskResult: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("error", error)
            writer.member("response", response)
            writer.member("progress", progress)
            writer.member("contentLength", contentLength)
            writer.member("contentDigest", contentDigest)
        }
    }
}

extension TaskResponse: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("statusCode", statusCode)
            writer.member("headers", headers)
            writer.member("droppedHeaders", droppedHeaders)
            writer.member("mimeType", mimeType)
            writer.member("expectedContentLength", expectedContentLength)
            writer.member("suggestedFilename", suggestedFilename)
            writer.member("url", url)
        }
    }
}

extension TaskProgress: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("attempts", attempts)
            writer.member("lastAttempt", lastAttempt)
            writer.member("resume", resume)
            writer.member("durableOffset", durableOffset)
            writer.member("bytesFetchedTwice", bytesFetchedTwice)
            writer.member("redirects", redirects)
            writer.member("currentURL", currentURL)
            writer.member("transactions", transactions)
            writer.member("countOfBytesSent", countOfBytesSent)
            writer.member("countOfBytesReceived", countOfBytesReceived)
            writer.member("isConfirmed", isConfirmed)
            writer.member("restartCause", restartCause)
            writer.member("adoptedFile", adoptedFile)
            writer.member("diskPauses", diskPauses)
            writer.member("diskLosses", diskLosses)
            writer.member("uploadURL", uploadURL)
            writer.member("uploadVersion", uploadVersion)
            writer.member("uploadOffset", uploadOffset)
            writer.member("uploadRequest", uploadRequest)
            writer.member("credentialsTried", credentialsTried)
            writer.member("authentication", authentication)
        }
    }
}

extension AttemptLedger: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("attempts", attempts)
            writer.member("failuresSinceProgress", failuresSinceProgress)
            writer.member("highestOffset", highestOffset)
            writer.member("statusAttempts", statusAttempts)
            writer.member("nameAttempts", nameAttempts)
            writer.member("restarts", restarts)
            writer.member("digestMismatches", digestMismatches)
            writer.member("localFaults", localFaults)
        }
    }
}

extension AttemptRecord: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("number", number)
            writer.member("startedAt", startedAt)
            writer.member("endedAt", endedAt)
            writer.member("offset", offset)
            writer.member("statusCode", statusCode)
            writer.member("error", error)
        }
    }
}

extension RedirectRecord: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("statusCode", statusCode)
            writer.member("url", url)
        }
    }
}

extension TransactionMetrics: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.member("statusCode", statusCode)
            writer.member("error", error)
            writer.member("offset", offset)
            writer.member("fetchStartDate", fetchStartDate)
            writer.member("domainLookupStartDate", domainLookupStartDate)
            writer.member("domainLookupEndDate", domainLookupEndDate)
            writer.member("connectStartDate", connectStartDate)
            writer.member("secureConnectionStartDate", secureConnectionStartDate)
            writer.member("secureConnectionEndDate", secureConnectionEndDate)
            writer.member("connectEndDate", connectEndDate)
            writer.member("requestStartDate", requestStartDate)
            writer.member("requestEndDate", requestEndDate)
            writer.member("responseStartDate", responseStartDate)
            writer.member("responseEndDate", responseEndDate)
            writer.member("networkProtocolName", networkProtocolName)
            writer.member("negotiatedTLSProtocolVersion", negotiatedTLSProtocolVersion)
            writer.member("negotiatedTLSCipherSuite", negotiatedTLSCipherSuite)
            writer.member("isReusedConnection", isReusedConnection)
            writer.member("isProxyConnection", isProxyConnection)
            writer.member("localAddress", localAddress)
            writer.member("localPort", localPort)
            writer.member("remoteAddress", remoteAddress)
            writer.member("remotePort", remotePort)
            writer.member("countOfRequestHeaderBytesSent", countOfRequestHeaderBytesSent)
            writer.member("countOfRequestBodyBytesSent", countOfRequestBodyBytesSent)
            writer.member("countOfResponseHeaderBytesReceived", countOfResponseHeaderBytesReceived)
            writer.member("countOfResponseBodyBytesReceived", countOfResponseBodyBytesReceived)
        }
    }
}

extension ResumePoint: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("url", url)
            writer.member("entityTag", entityTag)
            writer.member("lastModified", lastModified)
            writer.member("lastModifiedIsStrong", lastModifiedIsStrong)
            writer.member("totalLength", totalLength)
            writer.member("offset", offset)
            writer.member("digest", digest)
        }
    }
}

extension AuthenticationStep: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("questionId", questionId)
            writer.member("disposition", disposition.rawValue)
            writer.member("space", space)
        }
    }
}

extension ProtectionSpace: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("host", host)
            writer.member("port", port)
            writer.member("scheme", scheme)
            writer.member("realm", realm)
            writer.member("authenticationMethod", authenticationMethod.rawValue)
            writer.member("isProxy", isProxy)
            writer.member("serverPublicKey", serverPublicKey)
        }
    }
}

extension Destination: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("root", root)
            writer.member("path", path)
            writer.member("replace", replace)
        }
    }
}

extension TaskError: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("code", code.rawValue)
            writer.member("localizedDescription", localizedDescription)
            writer.member("failingURL", failingURL)
            writer.member("backgroundTaskCancelledReason", backgroundTaskCancelledReason)
            writer.member("networkUnavailableReason", networkUnavailableReason)
            writer.member("policy", policy)
            writer.member("underlying", underlying)
        }
    }
}

extension TaskError.Underlying: Document {
    package func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("domain", domain)
            writer.member("code", code)
            writer.member("message", message)
        }
    }
}
