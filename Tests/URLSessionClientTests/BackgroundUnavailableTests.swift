import Foundation
import TestSupport
import Testing

/// The compiler's advice for code that uses sessions of other kinds.
struct BackgroundUnavailableTests {
    /// A line of Apple's shape, and words of the advice.
    static let lines = [
        ("configuration.sharedContainerIdentifier = \"group.example\"", "set temporaryDirectory"),
        ("configuration.urlCache = nil", "set requestCachePolicy"),
        ("configuration.httpCookieStorage = nil", "httpShouldSetCookies"),
        ("configuration.urlCredentialStorage = nil", "answer challenges"),
        ("configuration.protocolClasses = []", "protocol classes"),
        ("configuration.connectionProxyDictionary = [:]", "use proxy"),
        ("configuration.tlsMinimumSupportedProtocolVersion = .TLSv12", "renamed to 'tls12'"),
        ("configuration.tlsMinimumSupportedProtocolVersion = .TLSv13", "renamed to 'tls13'"),
        ("_ = URLSessionConfiguration.default", "background(withIdentifier:)"),
        ("_ = URLSessionConfiguration.ephemeral", "background(withIdentifier:)"),
        ("_ = URLSession(configuration: configuration)", "init(configuration:delegate:)"),
        ("_ = URLSession.shared", "create one with an identifier"),
        ("session.dataTask(with: url).resume()", "use downloadTask(with:)"),
        ("session.dataTask(with: request).resume()", "use downloadTask(with:)"),
        ("session.dataTask(with: url) { data, _, _ in print(data as Any) }.resume()", "and the delegate"),
        ("session.dataTask(with: request) { data, _, _ in print(data as Any) }.resume()", "and the delegate"),
        ("session.downloadTask(with: url) { file, _, _ in print(file as Any) }.resume()", "didFinishDownloadingTo"),
        ("session.downloadTask(with: request) { file, _, _ in print(file as Any) }.resume()", "didFinishDownloadingTo"),
        ("session.downloadTask(withResumeData: Data()) { _, _, _ in }.resume()", "withResumeData:"),
        ("session.uploadTask(with: request, fromFile: url) { _, _, _ in }.resume()", "didCompleteWithError"),
        ("session.uploadTask(with: request, from: Data()).resume()", "write the data to a file"),
        ("session.uploadTask(with: request, from: Data()) { _, _, _ in }.resume()", "write the data to a file"),
        ("session.uploadTask(withStreamedRequest: request).resume()", "not streams"),
        ("_ = try await session.data(from: url)", "use downloadTask(with:)"),
        ("_ = try await session.data(for: request)", "use downloadTask(with:)"),
        ("_ = try await session.download(from: url)", "use downloadTask(with:)"),
        ("_ = try await session.download(for: request)", "use downloadTask(with:)"),
        ("_ = try await session.upload(for: request, fromFile: url)", "use uploadTask(with:fromFile:)"),
        ("_ = try await session.upload(for: request, from: Data())", "use uploadTask(with:fromFile:)"),
        ("configuration.httpShouldUsePipelining = true", "remove the line"),
        ("configuration.multipathServiceType = .handover", "chooses the network"),
        ("func response(_ disposition: URLSession.ResponseDisposition) {}", "remove the method"),
        ("func metrics(_ t: BackgroundSessionTaskTransactionMetrics) -> Bool { t.isCellular }", "kind of its network"),
        ("configuration.shouldUseExtendedBackgroundIdleMode = true", "no idle time"),
        ("session.downloadTask(with: url).delegate = nil", "the session's delegate"),
        ("session.downloadTask(with: url).prefersIncrementalDelivery = false", "remove the line"),
        ("session.flush {}", "remove the call"),
        ("await session.flush()", "remove the call"),
    ]

    @Test func `The compiler gives advice for declarations that a background session lacks`() async throws {
        let folder = TemporaryFolder()
        let head = [
            "import Foundation", "import FoundationNetworking", "import URLSessionClient",
            "typealias URLSession = BackgroundSession",
            "typealias URLSessionConfiguration = BackgroundSessionConfiguration",
            "func lines(",
            "    _ session: URLSession, _ configuration: URLSessionConfiguration, _ request: URLRequest,",
            "    _ url: URL", ") async throws {",
        ]
        let source = (head + Self.lines.map(\.0) + ["}"]).joined(separator: "\n")
        let file = folder.write(Array(source.utf8), to: "lines.swift")
        let environment = ["PATH", "HOME"].compactMap { name in
            ProcessInfo.processInfo.environment[name].map { "\(name)=\($0)" }
        }
        let script = "swiftc -typecheck -swift-version 6 -I \"$1\" \"$2\" 2>&1 | grep ': error: '"
        let arguments = ["/bin/sh", "-c", script, "sh", BackgroundAppTests.built("Modules"), file]
        let output = String(
            decoding: try await ChildProcess.run(["/usr/bin/env"] + environment + arguments, within: .seconds(120)),
            as: UTF8.self)
        let errors = output.split(separator: "\n")
        for (number, line) in Self.lines.enumerated() {
            let own = errors.filter { $0.contains("lines.swift:\(head.count + number + 1):") }
            #expect(own.count == 1 && own.first?.contains(line.1) == true, "\(line.0): \(own)")
        }
        #expect(errors.count == Self.lines.count, "\(output.prefix(2000))")
    }
}
