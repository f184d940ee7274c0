import URLSessionClient

// Apple's names for the library's types. With them, or with one search and replace, Apple's code compiles.
typealias URLSession = BackgroundSession
typealias URLSessionConfiguration = BackgroundSessionConfiguration
typealias URLSessionTask = BackgroundSessionTask
typealias URLSessionDownloadTask = BackgroundSessionDownloadTask
typealias URLSessionUploadTask = BackgroundSessionUploadTask
typealias URLSessionDownloadDelegate = BackgroundSessionDownloadDelegate
typealias URLSessionTaskMetrics = BackgroundSessionTaskMetrics
typealias UIApplication = LaunchReceiver
typealias UIApplicationDelegate = LaunchDelegate
typealias UIBackgroundFetchResult = BackgroundFetchResult
