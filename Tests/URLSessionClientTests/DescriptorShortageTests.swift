import Foundation
import TestSupport
import Testing
import URLSessionClient
import Wire

/// Receivers of launches without a free descriptor for waiting connections.
struct DescriptorShortageTests {
    /// Starts a receiver that listens on a port.
    private static func start(_ program: String, _ port: UInt16, _ house: ClientTests.House) async throws
        -> ChildProcess
    {
        let folder = TemporaryFolder()
        guard program == "urlsession" else {
            let app = try await BackgroundAppTests.start(
                house, port: port, inbox: folder.file("inbox"), log: folder.file("log"))
            try await eventually("it is told of launches") { try await house.client.app().webhook.url != nil }
            return app
        }
        let process = try await ChildProcess([
            "/usr/bin/env", "URLSESSION_URL=http://127.0.0.1:\(house.service.port)", "HOME=\(folder.path)",
            BackgroundAppTests.built(program), "receive", "--listen", "127.0.0.1:\(port)", "--no-register",
        ])
        try await eventually("it listens") { (try? Socket.connect(port: port)) != nil }
        return process
    }

    @Test(.enabled(if: ProcessFacts.canLimitDescriptors), arguments: ["urlsession", "background-app"])
    func `Launches wait while descriptors are short, which uses no CPU`(_ program: String) async throws {
        let house = try await ClientTests.House()
        let port = try BackgroundAppTests.freePort()
        let receiver = try await Self.start(program, port, house)
        let process = ProcessFacts(pid: receiver.pid)
        let open = Set(try await process.descriptors)
        let limit = try #require((0...).first { !open.contains($0) })
        try await process.limitDescriptors(below: limit)
        // More connections than the process may close until then.
        let sockets = try (0..<12).map { _ in try Socket.connect(port: port) }
        try await eventually("it has none left") { try await process.descriptors.count { $0 < limit } == limit }
        let before = process.processorTime
        // The period of the measurement.
        try await Task.sleep(for: .seconds(1))
        #expect(process.processorTime - before < .milliseconds(100))
        try await process.limitDescriptors(below: 1024)
        // The request is not signed, and is judged.
        #expect(try await APIClient(port: port).post("/", [:]).status == 401)
        withExtendedLifetime(sockets) {}
    }
}
