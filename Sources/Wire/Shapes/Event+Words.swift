extension Event: CustomStringConvertible {
    /// One line for people: `#3 task.didComplete, task 1 (debian.html): succeeded, status 200`.
    public var description: String {
        let place = seq.map { "#\($0) " } ?? ""
        let task = taskIdentifier.map { ", task \($0)" + (clientTaskId.map { " (\($0))" } ?? "") } ?? ""
        let words = words
        return place + type.rawValue + task + (words.isEmpty ? "" : ": " + words)
    }

    /// The data in words; empty if it cannot be read, such as that of a newer service.
    private var words: String {
        do {
            return switch type {
            case .taskDidCreate: (try data.read() as EventData.DidCreate).url
            case .taskDidSendBodyData: (try data.read() as EventData.DidSendBodyData).words
            case .taskDidWriteData: (try data.read() as EventData.DidWriteData).words
            case .taskWillRetry: (try data.read() as EventData.WillRetry).words
            case .taskWillBeginDelayedRequest: (try data.read() as DelayedRequest).request.url
            case .taskDidReceiveChallenge: (try data.read() as AuthenticationChallenge).words
            case .taskDidResumeAtOffset: (try data.read() as EventData.DidResumeAtOffset).words
            case .taskDidFinishDownloading: "\((try data.read() as EventData.DidFinishDownloading).length) bytes"
            case .taskDidComplete: (try data.read() as EventData.DidComplete).words
            case .sessionDidStall: (try data.read() as EventData.DidStall).words
            case .setDidPublish: (try data.read() as EventData.DidPublish).words
            case .setDidFail: (try data.read() as EventData.DidFail).words
            case .sessionDidFinishEvents: (try data.read() as EventData.DidFinishEvents).launchId
            case .sessionDidBecomeInvalid: (try data.read() as EventData.DidBecomeInvalid).error?.name ?? ""
            default: ""
            }
        } catch {
            return ""
        }
    }
}

extension EventData.DidSendBodyData {
    fileprivate var words: String { amount(totalBytesSent, of: totalBytesExpectedToSend) }
}

extension EventData.DidWriteData {
    fileprivate var words: String { amount(totalBytesWritten, of: totalBytesExpectedToWrite) }
}

extension EventData.WillRetry {
    fileprivate var words: String {
        "attempt \(attempt) failed" + (error.map { " (\($0.name))" } ?? "") + ", the next one is at \(nextAt)"
    }
}

extension EventData.DidStall {
    fileprivate var words: String {
        let names = errors.map(\.name)
        return "\(taskCount) tasks since \(since)" + (names.isEmpty ? "" : " (\(names.joined(separator: ", ")))")
    }
}

extension EventData.DidPublish {
    fileprivate var words: String { "\(name) \(version): \(files) files, \(bytes) bytes (\(cause))" }
}

extension EventData.DidFail {
    fileprivate var words: String {
        let first = failures.first.map { ": " + ($0.path.map { "\($0): " } ?? "") + $0.detail } ?? ""
        return "\(name) \(version)" + first
    }
}

extension AuthenticationChallenge {
    fileprivate var words: String {
        "\(protectionSpace.authenticationMethod) for \(protectionSpace.host):\(protectionSpace.port)"
            + (protectionSpace.realm.map { " (\($0))" } ?? "")
    }
}

extension EventData.DidResumeAtOffset {
    fileprivate var words: String { "at byte \(fileOffset)" + (cause.isEmpty ? "" : " (\(cause))") }
}

extension EventData.DidComplete {
    fileprivate var words: String {
        outcome.rawValue + (error.map { ", \($0.name): \($0.localizedDescription)" } ?? "")
            + (response.map { ", status \($0.statusCode)" } ?? "")
    }
}

private func amount(_ bytes: Int64, of all: Int64?) -> String {
    "\(bytes)" + (all.map { " of \($0)" } ?? "") + " bytes"
}
