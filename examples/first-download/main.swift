import Foundation
import URLSessionClient

final class Downloads: BackgroundSessionDownloadDelegate {
    func urlSession(
        _ session: BackgroundSession, downloadTask: BackgroundSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        try? FileManager.default.moveItem(at: location, to: URL(filePath: "page.html"))
    }

    func urlSession(_ session: BackgroundSession, task: BackgroundSessionTask, didCompleteWithError error: (any Error)?)
    {
        print(error ?? "done")
    }
}

let session = BackgroundSession(identifier: "com.example.first", delegate: Downloads())
session.downloadTask(with: URL(string: CommandLine.arguments[1])!).resume()
dispatchMain()
