import Foundation
import TestSupport
import Testing
import URLSessionClient

/// The app of `examples/background-app`, which uses Apple's names.
struct BackgroundAppTests {
    typealias House = ClientTests.House

    /// The path of a program of this package.
    static func built(_ name: String) -> String {
        ServiceProcess.binary.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
            + "/" + name
    }

    static func freePort() throws -> UInt16 {
        let receiver = try Receiver()
        defer { receiver.stop() }
        return receiver.port
    }

    /// Starts the app with URLs to download.
    static func start(
        _ house: House, port: UInt16, inbox: String, feed: String = "", login: String = "", log: String,
        _ urls: [String] = []
    ) async throws -> ChildProcess {
        let process = try await ChildProcess(
            [
                "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(house.service.port)", "URLSESSION_KEY=dev",
                "PORT=\(port)", "INBOX=\(inbox)", "FEED=\(feed)", "LOGIN=\(login)", "/bin/sh", "-c",
                "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh", log, built("background-app"),
            ] + urls)
        try await eventually("it listens") { (try? Socket.connect(port: port)) != nil }
        return process
    }

    @Test func `An app that is killed during a download is launched, and gets the rest`() async throws {
        let house = try await House()
        let (gate, inbox, logs) = (Gate(), TemporaryFolder(), TemporaryFolder())
        house.origin.serve("/first", .generated(seed: 1, length: 100_000))
        house.origin.serve("/second", .generated(seed: 2, length: 100_000), always: [.holdBody(after: 50_000, gate)])
        let port = try Self.freePort()
        func start(_ urls: [String] = []) async throws -> ChildProcess {
            try await Self.start(house, port: port, inbox: inbox.path, log: logs.file("log"), urls)
        }
        var app: ChildProcess? = try await start([house.origin.url("/first"), house.origin.url("/second")])
        try await eventually("the first download", within: .seconds(60)) {
            readFile(inbox.file("first")) == Content.bytes(seed: 1, length: 100_000)
        }
        try await house.origin.waitForRequests(1, path: "/second")
        withExtendedLifetime(app) {}
        app = nil
        gate.open()
        try await eventually("the launch", within: .seconds(60)) {
            try await house.client.launches().items.first?.attempts.isEmpty == false
        }
        #expect(readFile(inbox.file("second")) == nil)
        app = try await start()
        try await eventually("the launch is completed", within: .seconds(90)) {
            try await house.client.launches().items.first?.state == .completed
        }
        #expect(readFile(inbox.file("second")) == Content.bytes(seed: 2, length: 100_000))
        let session = try await house.client.session("MySession")
        #expect(session.taskCounts.outcomes.succeeded == 2)
        try await eventually("all is acknowledged") {
            let session = try await house.client.session("MySession")
            return session.acknowledgedSeq == session.lastEventSeq
        }
        withExtendedLifetime(app) {}
    }

    @Test func `An app is woken for a fetch, reports its result, and is launched for its download`() async throws {
        let house = try await House()
        let (inbox, logs) = (TemporaryFolder(), TemporaryFolder())
        house.origin.serve("/feed", .text("news"))
        let app = try await Self.start(
            house, port: try Self.freePort(), inbox: inbox.path, feed: house.origin.url("/feed"), log: logs.file("log"))
        _ = try await eventually("a fetch can be simulated") { try? await house.client.simulateFetch() }
        try await eventually("the fetch ends", within: .seconds(60)) {
            try await house.client.backgroundRefresh().history.first?.result == .newData
        }
        try await eventually("the news", within: .seconds(60)) { readFile(inbox.file("feed")) == Array("news".utf8) }
        withExtendedLifetime(app) {}
    }

    @Test func `An app's methods of Apple's shape are called for a challenge and before a delayed request`()
        async throws
    {
        let house = try await House()
        let (inbox, logs) = (TemporaryFolder(), TemporaryFolder())
        house.origin.serve(
            "/closed", .text("secret"), always: [.demand(authorization: "Basic dTpw", challenge: "Basic realm=\"r\"")])
        let app = try await Self.start(
            house, port: try Self.freePort(), inbox: inbox.path, login: "u:p", log: logs.file("log"),
            [house.origin.url("/closed")])
        try await eventually("the download") { readFile(inbox.file("closed")) == Array("secret".utf8) }
        let shown = try await house.client.tasks(in: "MySession").items
        #expect(shown.map(\.confirmBeforeStart) == [true])
        let questions = try await house.client.questions().items
        #expect(questions.count == 2 && questions.allSatisfy { $0.state == .answered })
        withExtendedLifetime(app) {}
    }

    @Test func `The app's sources use Apple's names alone`() throws {
        let sources = "\(repository)/examples/background-app/Sources/app"
        for file in ["DownloadManager", "AppDelegate"] {
            let text = String(decoding: try #require(readFile("\(sources)/\(file).swift")), as: UTF8.self)
            #expect(!text.contains("BackgroundSession") && !text.contains("import URLSessionClient"))
        }
    }
}

/// The program of the README.
struct FirstDownloadTests {
    @Test func `The README and its article contain the program of examples/first-download`() throws {
        let program = String(
            decoding: try #require(readFile("\(repository)/examples/first-download/main.swift")), as: UTF8.self)
        let article = "Sources/URLSessionClient/URLSessionClient.docc/FirstDownload.md"
        for file in ["README.md", article] {
            let text = String(decoding: try #require(readFile("\(repository)/\(file)")), as: UTF8.self)
            #expect(text.contains("```swift\n\(program)```"), "\(file)")
        }
    }

    @Test func `The program downloads, and keeps its earlier downloads`() async throws {
        let house = try await ClientTests.House()
        let folder = TemporaryFolder()
        let program = BackgroundAppTests.built("first-download")
        for page in ["first", "second"] {
            house.origin.serve("/\(page)", .text(page))
            let process = try await ChildProcess([
                "/usr/bin/env", "-C", folder.path, "URLSESSION_URL=http://127.0.0.1:\(house.service.port)", program,
                house.origin.url("/\(page)"),
            ])
            try await eventually("the \(page) page") { Self.pages(in: folder).contains(Array(page.utf8)) }
            withExtendedLifetime(process) {}
        }
        #expect(Self.pages(in: folder).count == 2)
    }

    private static func pages(in folder: TemporaryFolder) -> Set<[UInt8]> {
        Set(
            entries(of: folder.path).filter { $0.name.hasPrefix("page-") }.compactMap { readFile(folder.file($0.name)) }
        )
    }
}
