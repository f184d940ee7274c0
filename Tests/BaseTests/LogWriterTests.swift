import Glibc
import Testing

@testable import Base

@Suite struct LogWriterTests {
    /// A pipe without a reader until the test reads.
    private final class Pipe: Sendable {
        let ends: (read: Int32, write: Int32)

        init() throws {
            var ends: [Int32] = [0, 0]
            let code = pipe(&ends)
            try #require(code == 0)
            _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
            self.ends = (ends[0], ends[1])
        }

        // The writing end stays open: the writer's thread may be writing a line.
        deinit { close(ends.read) }

        /// The bytes that the pipe has now.
        func read() -> String {
            var bytes = [UInt8](repeating: 0, count: 1 << 17)
            let count = Glibc.read(ends.read, &bytes, bytes.count)
            return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
        }
    }

    @Test func `Lines in quick succession are written together, and none is split`() throws {
        var ends: [Int32] = [0, 0]
        // Each read of such a socket is one write.
        let code = socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &ends)
        try #require(code == 0)
        let (reading, writing) = (ends[0], ends[1])
        defer { close(reading) }
        _ = fcntl(reading, F_SETFL, O_NONBLOCK)
        let writer = LogWriter(descriptor: writing) { Array("\($0) dropped\n".utf8) }
        for number in 0..<200 { writer.write(Array("line \(number)\n".utf8)) }
        writer.flush(within: .seconds(60))
        var pieces: [String] = []
        var bytes = [UInt8](repeating: 0, count: 8192)
        while case let count = Glibc.read(reading, &bytes, bytes.count), count > 0 {
            pieces.append(String(decoding: bytes.prefix(count), as: UTF8.self))
        }
        #expect(pieces.joined() == (0..<200).map { "line \($0)\n" }.joined())
        #expect(pieces.allSatisfy { $0.hasSuffix("\n") && $0.utf8.count <= 4096 })
        #expect(pieces.count < 100)
    }

    private func makeWriter(_ pipe: Pipe, capacity: Int = 1 << 20) -> LogWriter {
        LogWriter(descriptor: pipe.ends.write, capacity: capacity) { Array("\($0) dropped\n".utf8) }
    }

    @Test func `Lines arrive in order, and the end waits for them`() throws {
        let pipe = try Pipe()
        let writer = makeWriter(pipe)
        for number in 0..<1000 { writer.write(Array("line \(number)\n".utf8)) }
        writer.flush(within: .seconds(60))
        #expect(pipe.read() == (0..<1000).map { "line \($0)\n" }.joined())
    }

    @Test func `Lines beyond a full pipe are dropped, counted and reported`() async throws {
        let pipe = try Pipe()
        let writer = makeWriter(pipe, capacity: 10_000)
        let line = Array(String(repeating: "x", count: 999).utf8) + [UInt8(ascii: "\n")]
        // The pipe holds 64 KiB, the writer ten lines more, whatever the number in flight.
        for _ in 0..<500 { writer.write(line) }
        // Without a reader the wait has a limit.
        writer.flush(within: .milliseconds(20))
        var text = ""
        var (received, dropped) = (0, 0)
        let deadline = ContinuousClock.now + .seconds(60)
        while received + dropped < 500, ContinuousClock.now < deadline {
            text += pipe.read()
            let told = text.split(separator: "\n").filter { $0.hasSuffix(" dropped") }
            dropped = told.reduce(0) { $0 + (Int($1.split(separator: " ")[0]) ?? 0) }
            received = text.count { $0 == "\n" } - told.count
            await Task.yield()
        }
        #expect(received + dropped == 500 && dropped > 300, "\(received) received, \(dropped) dropped")
        writer.write(Array("after\n".utf8))
        writer.flush(within: .seconds(60))
        #expect(pipe.read() == "after\n")
    }
}
