import Wire

extension Words {
    static func event(_ event: Event, now: Int64 = now) -> String {
        (try? words(event, now)) ?? event.type.rawValue
    }

    private static func words(_ event: Event, _ now: Int64) throws -> String {
        switch event.type {
        case .taskDidCreate:
            let data: EventData.DidCreate = try event.data.read()
            return "was created, for \(data.url)"
        case .taskIsWaitingForConnectivity: return "waits for the network"
        case .taskDidSendBodyData:
            let data: EventData.DidSendBodyData = try event.data.read()
            return "sent \(progress(data.totalBytesSent, data.totalBytesExpectedToSend))"
        case .taskDidWriteData:
            let data: EventData.DidWriteData = try event.data.read()
            return "received \(progress(data.totalBytesWritten, data.totalBytesExpectedToWrite))"
        case .taskWillRetry:
            let data: EventData.WillRetry = try event.data.read()
            let next = distance(data.nextAt, now: now).map { ", retries \($0)" } ?? ""
            let cause = data.error.map { sentence($0.localizedDescription) } ?? "a transient status"
            return "attempt \(data.attempt) ended: \(cause)\(next)"
        case .taskWillBeginDelayedRequest:
            let data: DelayedRequest = try event.data.read()
            return "asks whether it may start (\(data.questionId))"
        case .taskDidReceiveChallenge:
            let data: AuthenticationChallenge = try event.data.read()
            return "asks for a credential for \(space(data.protectionSpace)) (\(data.questionId))"
        case .taskDidResumeAtOffset:
            let data: EventData.DidResumeAtOffset = try event.data.read()
            let place = data.fileOffset == 0 ? "restarted" : "resumed at \(bytes(data.fileOffset))"
            return data.cause.isEmpty ? place : "\(place): \(data.cause)"
        case .taskDidFinishDownloading:
            let data: EventData.DidFinishDownloading = try event.data.read()
            return "has its content, \(bytes(data.length)), \(data.digest.algorithm) \(data.digest.value)"
        case .taskDidFinishCollectingMetrics:
            let data: TaskMetrics = try event.data.read()
            let requests = data.transactionMetrics.count.counted("request")
            return "took \(duration(data.taskInterval.duration)) and \(requests)"
        case .taskDidComplete:
            let data: EventData.DidComplete = try event.data.read()
            switch data.outcome {
            case .succeeded: return "succeeded" + (data.response.map { " with \(status($0.statusCode))" } ?? "")
            case .notModified: return "is not modified"
            case .cancelled: return "was cancelled"
            default: return "failed: \(failure(data.outcome, data.error, data.response))"
            }
        case .sessionDidStall:
            let data: EventData.DidStall = try event.data.read()
            return "\(data.taskCount) running tasks have made no progress since \(data.since)"
        case .setDidPublish:
            let data: EventData.DidPublish = try event.data.read()
            let amount = "\(Int(data.files).counted("file")), \(bytes(data.bytes))"
            return "version \(data.version) of set \(data.name) is current (\(data.cause)): \(amount)"
        case .setDidFail:
            let data: EventData.DidFail = try event.data.read()
            let first = data.failures.first.map { ": " + ($0.path.map { "\($0): " } ?? "") + sentence($0.detail) } ?? ""
            return "version \(data.version) of set \(data.name) failed\(first)"
        case .sessionDidFinishEvents:
            let data: EventData.DidFinishEvents = try event.data.read()
            return "all events of launch \(data.launchId) were handled"
        case .sessionDidBecomeInvalid: return "the session is invalid"
        default: return event.type.rawValue
        }
    }

    private static func progress(_ count: Int64, _ whole: Int64?) -> String {
        whole.map { bytes(count, of: $0) } ?? bytes(count)
    }

    static func space(_ space: ProtectionSpace) -> String {
        "\(space.host):\(space.port)" + (space.realm.map { " (\($0))" } ?? "")
    }
}
