import Foundation

/// Is launched by the system when downloads are done, and to fetch.
class AppDelegate: NSObject, UIApplicationDelegate {
    static let shared = AppDelegate()

    let downloads = DownloadManager()
    var backgroundCompletionHandler: (() -> Void)?

    func application(
        _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
        completionHandler: @escaping () -> Void
    ) {
        print("launched", identifier)
        backgroundCompletionHandler = completionHandler
        downloads.reconnect()
    }

    func application(
        _ application: UIApplication,
        performFetchWithCompletionHandler completionHandler: @escaping (UIBackgroundFetchResult) -> Void
    ) {
        print("fetching")
        guard let feed = feed else {
            completionHandler(.noData)
            return
        }
        downloads.download(feed)
        completionHandler(.newData)
    }
}
