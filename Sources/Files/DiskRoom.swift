package import Base
import Glibc
import Synchronization

/// How many bytes may still be written before the disk is down at its floor.
///
/// The disk is measured now and then; what is written in between is counted. A transfer that finds too little room, or
/// claims a good part of the rest, rings for a new measurement.
package final class DiskRoom: Sendable {
    /// Bytes above the floor that content leaves to the database and its log.
    package static let headroom: Int64 = 4 << 20

    /// Rung when the disk should be measured at once.
    package let bell: Doorbell
    private let floor: Int64
    private let written = Atomic<Int64>(0)
    /// Of the bytes counted as written those that still lie in buffers: no measurement of the disk has them.
    private let gathered = Atomic<Int64>(0)
    /// The count of written bytes with which the floor is reached.
    private let end = Atomic<Int64>(.max)
    /// The count of written bytes with which the disk is measured anew.
    private let alarm = Atomic<Int64>(.max)
    private let free = Atomic<Int64>(.max)
    private let size = Atomic<Int64>(.max)

    /// - Parameter floor: Bytes that stay free.
    package init(floor: Int64, clock: Clock = .system) {
        self.floor = floor
        bell = Doorbell(clock: clock)
    }

    /// Counts bytes that are about to be written. False where they would not leave the floor free: then nothing is
    /// counted, and they must not be written.
    package func take(_ count: Int) -> Bool {
        let count = Int64(count)
        let after = written.add(count, ordering: .relaxed).newValue
        guard after <= end.load(ordering: .relaxed) else {
            written.subtract(count, ordering: .relaxed)
            bell.ring()
            return false
        }
        if after >= alarm.load(ordering: .relaxed) {
            alarm.store(.max, ordering: .relaxed)
            bell.ring()
        }
        return true
    }

    /// Whether so many bytes would leave the floor free now.
    package func fits(_ count: Int64) -> Bool {
        if count <= left { return true }
        bell.ring()
        return false
    }

    /// Bytes of content that may still be written; not positive where there is no room.
    package var left: Int64 { end.load(ordering: .relaxed) - written.load(ordering: .relaxed) }

    /// Whether new content may be written and leaves the floor free.
    package var hasSome: Bool { left > 0 }

    /// Free bytes of the filesystem when it was measured last.
    package var freeBytes: Int64 { free.load(ordering: .relaxed) }

    /// Whether the floor is free: as many bytes as the operator wants.
    package var isAboveFloor: Bool { freeBytes >= floor }

    /// The longest content that the empty disk could hold.
    package var largest: Int64 {
        let size = size.load(ordering: .relaxed)
        return size == .max ? .max : size - floor
    }

    /// Takes a measurement.
    ///
    /// - Parameter before: What had been written when it began: later bytes may not be in it.
    package func note(free: Int64, size: Int64, writtenBefore before: Int64) {
        let room = free - floor - min(Self.headroom, floor)
        self.free.store(free, ordering: .relaxed)
        self.size.store(size, ordering: .relaxed)
        end.store(before + room, ordering: .relaxed)
        alarm.store(before + max(1 << 20, room / 4), ordering: .relaxed)
    }

    /// Bytes of which a measurement that begins now knows.
    var writtenBytes: Int64 { written.load(ordering: .relaxed) - gathered.load(ordering: .relaxed) }

    /// Bytes went into a buffer on their way to the disk.
    func gather(_ count: Int) { gathered.add(Int64(count), ordering: .relaxed) }

    /// Bytes that were written, or are not wanted any more.
    func letGo(_ count: Int) { gathered.subtract(Int64(count), ordering: .relaxed) }
}

extension DiskQueue {
    /// Measures the filesystem of `path`: what an ordinary user could still write on it, and how large it is.
    package func measure(_ room: DiskRoom, _ path: String) async throws(SystemError) {
        try await run { () throws(SystemError) in
            let before = room.writtenBytes
            var status = statvfs()
            guard statvfs(path, &status) == 0 else { throw SystemError("statvfs", errno: errno) }
            let unit = UInt64(status.f_frsize)
            room.note(
                free: Int64(clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: unit).partialValue),
                size: Int64(clamping: UInt64(status.f_blocks).multipliedReportingOverflow(by: unit).partialValue),
                writtenBefore: before)
        }
    }
}
