import Foundation
import FoundationNetworking

/// Downloads in the background, as "Downloading files in the background" in Apple's documentation does it.
@MainActor
final class DownloadManager: NSObject {
    private lazy var urlSession: URLSession = {
        let config = URLSessionConfiguration.background(withIdentifier: "MySession")
        config.isDiscretionary = false
        config.sessionSendsLaunchEvents = true
        return URLSession(configuration: config, delegate: self, delegateQueue: nil)
    }()

    /// Makes the session again after a launch.
    func reconnect() { _ = urlSession }

    func download(_ url: URL) {
        let backgroundTask = urlSession.downloadTask(with: url)
        backgroundTask.earliestBeginDate = Date()
        backgroundTask.countOfBytesClientExpectsToSend = 200
        backgroundTask.countOfBytesClientExpectsToReceive = 500 * 1024
        backgroundTask.taskDescription = url.lastPathComponent
        backgroundTask.resume()
    }

    func listTasks() {
        urlSession.getAllTasks { tasks in
            print("tasks", tasks.count)
        }
    }
}

extension DownloadManager: URLSessionDownloadDelegate {
    nonisolated func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        guard let httpResponse = downloadTask.response as? HTTPURLResponse,
            (200...299).contains(httpResponse.statusCode)
        else {
            print("server error")
            return
        }
        do {
            let savedURL = inbox.appendingPathComponent(downloadTask.taskDescription ?? location.lastPathComponent)
            try? FileManager.default.removeItem(at: savedURL)
            try FileManager.default.moveItem(at: location, to: savedURL)
            print("saved", savedURL.lastPathComponent)
        } catch {
            print("file error: \(error)")
        }
    }

    nonisolated func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        let calculatedProgress = Float(totalBytesWritten) / Float(totalBytesExpectedToWrite)
        DispatchQueue.main.async {
            print("progress", calculatedProgress)
        }
    }

    nonisolated func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        guard let error = error else {
            print("completed", task.taskDescription ?? "")
            return
        }
        print("failed", (error as? URLError)?.code ?? error)
    }

    nonisolated func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodHTTPBasic,
            challenge.previousFailureCount == 0, let login = login
        else {
            completionHandler(.performDefaultHandling, nil)
            return
        }
        print("logging in", challenge.protectionSpace.realm ?? "")
        let credential = URLCredential(user: login.user, password: login.password, persistence: .forSession)
        completionHandler(.useCredential, credential)
    }

    nonisolated func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        print("beginning", request.url?.lastPathComponent ?? "")
        completionHandler(.continueLoading, nil)
    }

    nonisolated func urlSession(
        _ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        print("took", metrics.taskInterval.duration)
    }

    nonisolated func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) {
        DispatchQueue.main.async {
            guard let backgroundCompletionHandler = AppDelegate.shared.backgroundCompletionHandler else {
                return
            }
            AppDelegate.shared.backgroundCompletionHandler = nil
            backgroundCompletionHandler()
        }
    }
}
