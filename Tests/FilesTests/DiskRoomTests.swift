import Base
import Testing

@testable import Files

@Suite struct DiskRoomTests {
    @Test func `Written bytes count until the disk is measured again`() {
        let room = DiskRoom(floor: 10 << 20)
        #expect(room.take(1 << 40))
        let written = room.writtenBytes
        room.note(free: 15 << 20, size: 100 << 20, writtenBefore: written)
        // One mebibyte above floor and headroom.
        #expect(room.left == 1 << 20 && room.isAboveFloor && room.largest == 90 << 20)
        #expect(room.fits(1 << 20) && !room.fits((1 << 20) + 1))
        #expect(room.take(1_000_000))
        #expect(!room.take(100_000))
        #expect(room.left == (1 << 20) - 1_000_000)
        // Bytes written during a measurement may or may not be in it: they count.
        room.note(free: 15 << 20, size: 100 << 20, writtenBefore: written)
        #expect(room.left == (1 << 20) - 1_000_000)
        room.note(free: 9 << 20, size: 100 << 20, writtenBefore: room.writtenBytes)
        #expect(!room.isAboveFloor && room.left < 0 && !room.take(1))
    }

    @Test func `Bytes in buffers count beside a measurement, which cannot include them`() throws {
        let room = DiskRoom(floor: 0)
        let pool = BufferPool(limit: 2, room: room) {}
        var first = pool.take(), second = pool.take()
        let bytes = [UInt8](repeating: 7, count: 60_000)
        first?.begin(at: 50_000, length: 65_536)
        second?.begin(at: 65_536, length: 65_536)
        #expect(room.take(60_000))
        try #require(bytes.withUnsafeBytes { first?.append($0) } == true)
        try first?.moveSurplus(to: #require(second))
        func measure() { room.note(free: 100_000, size: 1 << 30, writtenBefore: room.writtenBytes) }
        measure()
        #expect(room.left == 40_000)
        first = nil
        measure()
        #expect(room.left == 40_000 + 15_536)
        second = nil
        measure()
        #expect(room.left == 100_000)
    }

    @Test func `A failed claim of space and a large one ring the bell`() async {
        let room = DiskRoom(floor: 0)
        func rang() async -> Bool { await room.bell.wait(until: 0) }
        room.note(free: 40 << 20, size: 100 << 20, writtenBefore: 0)
        #expect(room.take(9 << 20))
        #expect(await !rang())
        #expect(room.take(1 << 20))
        #expect(await rang())
        // Once per measurement.
        #expect(room.take(1 << 20))
        #expect(await !rang())
        #expect(!room.take(50 << 20))
        #expect(await rang())
    }
}
