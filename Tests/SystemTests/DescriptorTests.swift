import TestSupport
import Testing

/// A service without a free descriptor for waiting connections.
@Suite struct DescriptorTests {
    @Test(.enabled(if: ProcessFacts.canLimitDescriptors))
    func `Connections wait while descriptors are short, which is logged once and uses no CPU`() async throws {
        let service = try await ServiceProcess(nodes: 1)
        func told(_ message: String) -> Int {
            service.errors.split(separator: "\n").count { $0.contains(message) }
        }
        let process = ProcessFacts(pid: service.pid)
        // Few enough that the connections do not fit, and with some left for files.
        let limit = try #require(try await process.descriptors.max()) + 5
        try await process.limitDescriptors(below: limit)
        let sockets = try (0..<64).map { _ in try Socket.connect(port: service.ownPort) }
        try await eventually("the log reports it") { told("cannot be accepted") > 0 }
        let before = process.processorTime
        // The period of the measurement.
        try await Task.sleep(for: .seconds(1))
        #expect(process.processorTime - before < .milliseconds(500))
        // Some more connections are accepted, and the others wait on.
        let count = try await process.descriptors.count
        try await process.limitDescriptors(below: limit + limit / 8 + 3)
        try await eventually("one is accepted") { try await process.descriptors.count > count }
        #expect(told("accepted") == 1, "\(service.errors)")
        try await process.limitDescriptors(below: 1024)
        #expect(try await service.api.get("/healthz").status == 200)
        try await eventually("the log reports it") { told("connections are accepted again") == 1 }
        withExtendedLifetime(sockets) {}
    }
}
