import Base
import Core
import Files
import Glibc
import TestSupport
import Testing

@testable import TransferEngine

@Suite struct NoRoomTests {
    @Test func `A download stops before it uses the last room, with its bytes in the file`() async throws {
        let room = DiskRoom(floor: 0)
        let harness = try EngineHarness(room: room)
        harness.origin.serve("/", .generated(seed: 1, length: 3 << 20), always: [.chunked(size: 1 << 16)])
        room.note(free: 1 << 20, size: 100 << 20, writtenBefore: 0)
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .failed(.disk(errno: ENOSPC)))
        #expect(result.length > 0 && result.length <= 1 << 20)
        guard case .file(let path, let length) = result.received else {
            Issue.record("\(result.received)")
            return
        }
        #expect(readFile(path) == Content.bytes(seed: 1, length: Int(length)))
    }

    @Test func `An announced length that does not fit is refused before the body`() async throws {
        let room = DiskRoom(floor: 0)
        let harness = try EngineHarness(room: room)
        harness.origin.serve("/", .generated(seed: 1, length: 3 << 20))
        room.note(free: 1 << 20, size: 100 << 20, writtenBefore: 0)
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .failed(.disk(errno: ENOSPC)))
        #expect(result.length == 0 && filesBelow(harness.folder.path).isEmpty)
    }

    @Test func `Old bytes do not remain under a new version without room`() async throws {
        let room = DiskRoom(floor: 0)
        let harness = try EngineHarness(room: room)
        harness.origin.serve("/", .generated(seed: 1, length: 9 << 20))
        let old = [UInt8](repeating: 7, count: 1 << 20)
        let request = harness.request("/") {
            $0.sink = .content(path: harness.folder.write(old, to: "old"), resumeOffset: 1 << 20)
            $0.judge = { _ in .keep(at: 0) }
        }
        room.note(free: 1 << 20, size: 100 << 20, writtenBefore: 0)
        let result = try await harness.run(request)
        #expect(result.outcome == .failed(.disk(errno: ENOSPC)) && result.length == 0)
        #expect(readFile(harness.folder.file("old")) == [])
    }
}
