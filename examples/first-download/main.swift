import Foundation
import URLSessionClient

final class Downloads: BackgroundSessionDownloadDelegate {
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        // Each task has its own number, so downloads do not overwrite each other.
        let page = URL(filePath: "page-\(downloadTask.taskIdentifier).html")
        do { try FileManager.default.moveItem(at: location, to: page) } catch { print(error) }
    }

    func urlSession(_ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?)
    {
        print(error?.localizedDescription ?? "done")
    }
}

let session = BackgroundSession(identifier: "com.example.first", delegate: Downloads())
for address in CommandLine.arguments.dropFirst() { session.downloadTask(with: URL(string: address)!).resume() }
dispatchMain()
