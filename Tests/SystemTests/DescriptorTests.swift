import Glibc
import TestSupport
import Testing

/// A service that has no descriptor left for the connections that wait.
@Suite struct DescriptorTests {
    private static let prlimit = "/usr/bin/prlimit"

    /// Lets the service have so many descriptors from now on.
    private static func limit(_ service: ServiceProcess, _ descriptors: Int) async throws {
        _ = try await ChildProcess.run([prlimit, "--pid", "\(service.pid)", "--nofile=\(descriptors):"])
    }

    /// One more than the highest descriptor that is open.
    private static func end(of service: ServiceProcess) async throws -> Int {
        let listing = String(
            decoding: try await ChildProcess.run(["/bin/ls", "/proc/\(service.pid)/fd"]), as: UTF8.self)
        return try #require(listing.split(separator: "\n").compactMap { Int($0) }.max()) + 1
    }

    /// Time of the processor that the service has used, in hundredths of a second (proc(5), `utime` and `stime`).
    private static func ticks(of service: ServiceProcess) async throws -> Int {
        let stat = String(
            decoding: try await ChildProcess.run(["/bin/cat", "/proc/\(service.pid)/stat"]), as: UTF8.self)
        let fields = stat.split(separator: ") ").last?.split(separator: " ") ?? []
        return try #require(Int(fields[11])) + #require(Int(fields[12]))
    }

    @Test(.enabled(if: access(prlimit, X_OK) == 0))
    func `Connections wait while descriptors are short, which is logged once and costs no processor`() async throws {
        let service = try await ServiceProcess(nodes: 1)
        func told(_ message: String) -> Int {
            service.errors.split(separator: "\n").count { $0.contains(message) }
        }
        try await Self.limit(service, Self.end(of: service))
        let sockets = try (0..<8).map { _ in try Socket.connect(port: service.ownPort) }
        try await eventually("it is told") { told("cannot be accepted") > 0 }
        let before = try await Self.ticks(of: service)
        // The time over which is measured.
        try await Task.sleep(for: .seconds(1))
        let used = try await Self.ticks(of: service) - before
        #expect(used < 50, "\(used) hundredths of a second")
        #expect(told("accepted") == 1, "\(service.errors)")
        try await Self.limit(service, 1024)
        #expect(try await service.api.get("/healthz").status == 200)
        try await eventually("it is told") { told("connections are accepted again") == 1 }
        withExtendedLifetime(sockets) {}
    }
}
