// Background downloads with Apple's names: `swift run --package-path examples/background-app app https://example.com/a`.
//
// DownloadManager.swift and AppDelegate.swift are what Apple's documentation shows; Names.swift says whose types they
// use. This file is what iOS does for an app: it takes launches. Kill it at any time: the downloads go on, and when they
// are done it is launched, which here means that its port is called. Environment: URLSESSION_URL, URLSESSION_KEY,
// WEBHOOK_SECRET (of `urlsessiond serve --dev`), PORT, INBOX, FEED, LOGIN (user:password).
import Foundation
import URLSessionClient

func setting(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

let inbox = URL(fileURLWithPath: setting("INBOX") ?? "inbox")
let feed = setting("FEED").flatMap { URL(string: $0) }
let login = setting("LOGIN").map { $0.split(separator: ":", maxSplits: 1).map(String.init) }.flatMap {
    $0.count == 2 ? (user: $0[0], password: $0[1]) : nil
}
try FileManager.default.createDirectory(at: inbox, withIntermediateDirectories: true)

let devSecret = "whsec_" + Data(count: 32).base64EncodedString()
let application = try LaunchReceiver(secrets: [setting("WEBHOOK_SECRET") ?? devSecret], delegate: AppDelegate.shared)
let port = setting("PORT").flatMap { UInt16($0) } ?? 9000
try application.listen(on: port)
_ = try await Client.shared.changeWebhook(WebhookChange { $0.url = .set("http://127.0.0.1:\(port)/") })

for url in CommandLine.arguments.dropFirst().compactMap({ URL(string: $0) }) {
    AppDelegate.shared.downloads.download(url)
}
if CommandLine.arguments.count > 1 { AppDelegate.shared.downloads.listTasks() }
while true { try await Task.sleep(for: .seconds(3600)) }
