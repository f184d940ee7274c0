import Foundation
import FoundationNetworking
import Synchronization
import TestSupport
import URLSessionClient

/// A delegate that records its messages and keeps the downloads.
final class Recorder: BackgroundSessionDownloadDelegate, BackgroundSessionDataDelegate {
    struct Notes: Sendable {
        var messages: [String] = []
        var files: [String: [UInt8]] = [:]
        var places: [URL] = []
        var answers: [UInt8] = []
        var errors: [any Error] = []
        var challenges: [AuthenticationChallenge] = []
        var metrics: [BackgroundSessionTaskMetrics] = []
        var peak: Int64 = 0
        var sent: Int64 = 0
        var expectedToSend: Int64 = 0
    }

    typealias Judge = @Sendable (AuthenticationChallenge) -> (BackgroundSession.AuthChallengeDisposition, Credential?)?

    private let notes = Mutex(Notes())
    private let judge: Judge

    init(judge: @escaping Judge = { _ in (.performDefaultHandling, nil) }) { self.judge = judge }

    var all: Notes { notes.withLock { $0 } }
    var messages: [String] { all.messages }

    private func note(_ message: String, _ change: (inout sending Notes) -> Void = { _ in }) {
        notes.withLock { notes in
            notes.messages.append(message)
            change(&notes)
        }
    }

    func urlSession(_ session: BackgroundSession, didCreateTask task: BackgroundSessionTask) { note("created") }

    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        let bytes = readFile(location.path)
        let name = downloadTask.taskDescription ?? ""
        note("downloaded \(name)") { notes in
            notes.files[name] = bytes
            notes.places.append(location)
        }
    }

    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        notes.withLock { $0.peak = max($0.peak, totalBytesWritten) }
    }

    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        note("resumed \(fileOffset > 0 ? "behind the beginning" : "at the beginning") of \(expectedTotalBytes)")
    }

    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didSendBodyData bytesSent: Int64,
        totalBytesSent: Int64, totalBytesExpectedToSend: Int64
    ) {
        notes.withLock { ($0.sent, $0.expectedToSend) = (totalBytesSent, totalBytesExpectedToSend) }
    }

    func urlSession(_ session: BackgroundSession, dataTask: BackgroundSessionDataTask, didReceive data: Data) {
        note("data") { $0.answers += data }
    }

    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask,
        didFinishCollecting metrics: BackgroundSessionTaskMetrics
    ) {
        note("metrics") { $0.metrics.append(metrics) }
    }

    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?
    ) {
        note("completed \(task.taskDescription ?? "")\(error == nil ? "" : " with an error")") { notes in
            if let error { notes.errors.append(error) }
        }
    }

    func urlSession(
        _ session: BackgroundSession, task: BackgroundSessionTask, didReceive challenge: AuthenticationChallenge,
        completionHandler: @escaping @Sendable (BackgroundSession.AuthChallengeDisposition, Credential?) -> Void
    ) {
        note("challenge \(challenge.previousFailureCount)") { $0.challenges.append(challenge) }
        if let (disposition, credential) = judge(challenge) { completionHandler(disposition, credential) }
    }

    func urlSessionDidFinishEvents(forBackgroundURLSession session: BackgroundSession) { note("finished events") }

    func urlSession(_ session: BackgroundSession, didBecomeInvalidWithError error: (any Error)?) {
        note("invalid\(error == nil ? "" : " with an error")") { notes in
            if let error { notes.errors.append(error) }
        }
    }
}
