import Glibc
import TestSupport
import Testing

/// An idle service uses no CPU.
@Suite struct IdleTests {
    @Test func `No thread runs while a transfer waits for its origin`() async throws {
        let scene = try await Scene(configuration: [:])
        scene.origin.serve("/slow", .text("never whole"), always: [.stall(after: 4)])
        let number = try await scene.download("/slow")
        try await eventually("the first bytes are here") {
            try await scene.task(number)["countOfBytesReceived"].int == 4
        }
        try await expectStillness(scene)
    }

    /// libcurl ends a connection attempt when its timer fires, and has no other timer then.
    @Test func `No thread runs after a connection timeout`() async throws {
        let (listener, port) = try Socket.listen(port: 0, backlog: 0)
        let only = try Socket.connect(port: port)
        let scene = try await Scene()
        expect(try await scene.api.patch("/v1/app", ["webhook": ["url": .string("http://127.0.0.1:\(port)/")]]), 200)
        let ping = try await scene.api.post("/v1/app/webhook/ping")
        expect(ping, 200)
        #expect(ping.json["statusCode"].isNull && ping.json["error"].string != nil, "\(ping.text)")
        try await expectStillness(scene)
        withExtendedLifetime((listener, only)) {}
    }

    private func expectStillness(_ scene: Scene) async throws {
        try await eventually("the processor time stands still") {
            let before = Self.processorTime(of: scene.service.pid)
            try await Task.sleep(for: .milliseconds(300))
            return before != nil && Self.processorTime(of: scene.service.pid) == before
        }
    }

    /// CPU time in clock ticks: the fields utime and stime of proc_pid_stat(5), counted after the name in brackets.
    private static func processorTime(of pid: Int32) -> Int? {
        guard let file = fopen("/proc/\(pid)/stat", "r") else { return nil }
        defer { fclose(file) }
        var buffer = [UInt8](repeating: 0, count: 1024)
        let count = fread(&buffer, 1, buffer.count, file)
        let text = String(decoding: buffer.prefix(count), as: UTF8.self)
        let fields = text.drop { $0 != ")" }.split(separator: " ")
        guard fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) else { return nil }
        return user + system
    }
}
