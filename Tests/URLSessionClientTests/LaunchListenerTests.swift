import Foundation
import TestSupport
import Testing
import URLSessionClient

struct LaunchListenerTests {
    private func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }

    @Test func `A port in use leaks no descriptor`() async throws {
        let house = try await ClientTests.House()
        let receiver = try LaunchReceiver(
            client: house.client, secrets: [LaunchReceiverTests.secret], delegate: LaunchReceiverTests.App())
        let occupied = try Receiver()
        defer { occupied.stop() }
        let before = try openDescriptors()
        for _ in 0..<400 { #expect(throws: ClientError.self) { try receiver.listen(on: occupied.port) } }
        // Concurrent tests open and close descriptors as well.
        #expect(try openDescriptors() - before < 200)
    }
}
