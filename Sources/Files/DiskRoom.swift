package import Base
import Glibc
import Synchronization

/// The number of bytes that may be written before free disk space reaches the floor.
///
/// The disk is measured periodically, and writes between measurements are counted. A transfer that finds too little
/// space, or claims a large part of the rest, requests a new measurement.
package final class DiskRoom: Sendable {
    /// Bytes above the floor reserved for the database and its log.
    package static let headroom: Int64 = 4 << 20

    /// Rung when the disk should be measured at once.
    package let bell: Doorbell
    private let floor: Int64
    private let written = Atomic<Int64>(0)
    /// Bytes counted as written that are still in buffers: measurements of the disk do not include them.
    private let gathered = Atomic<Int64>(0)
    /// The count of written bytes at which the floor is reached.
    private let end = Atomic<Int64>(.max)
    /// The count of written bytes at which the disk is measured again.
    private let alarm = Atomic<Int64>(.max)
    private let free = Atomic<Int64>(.max)
    private let size = Atomic<Int64>(.max)

    /// - Parameter floor: The number of bytes that stay free.
    package init(floor: Int64, clock: Clock = .system) {
        self.floor = floor
        bell = Doorbell(clock: clock)
    }

    /// Counts bytes that are about to be written. False if they do not fit above the floor: then nothing is counted,
    /// and the bytes must not be written.
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

    /// Whether `count` bytes fit above the floor now.
    package func fits(_ count: Int64) -> Bool {
        if count <= left { return true }
        bell.ring()
        return false
    }

    /// The number of content bytes that may still be written; not positive if there is no space.
    package var left: Int64 { end.load(ordering: .relaxed) - written.load(ordering: .relaxed) }

    /// Whether new content fits above the floor.
    package var hasSome: Bool { left > 0 }

    /// The free bytes of the filesystem at the last measurement.
    package var freeBytes: Int64 { free.load(ordering: .relaxed) }

    /// Whether at least the floor, as set by the operator, is free.
    package var isAboveFloor: Bool { freeBytes >= floor }

    /// The longest content that an empty disk could hold.
    package var largest: Int64 {
        let size = size.load(ordering: .relaxed)
        return size == .max ? .max : size - floor
    }

    /// Stores a measurement.
    ///
    /// - Parameter before: The count of written bytes when the measurement began.
    package func note(free: Int64, size: Int64, writtenBefore before: Int64) {
        let room = free - floor - min(Self.headroom, floor)
        self.free.store(free, ordering: .relaxed)
        self.size.store(size, ordering: .relaxed)
        end.store(before + room, ordering: .relaxed)
        alarm.store(before + max(1 << 20, room / 4), ordering: .relaxed)
    }

    /// The count of bytes that a measurement started now includes.
    var writtenBytes: Int64 { written.load(ordering: .relaxed) - gathered.load(ordering: .relaxed) }

    /// Counts bytes added to a buffer.
    func gather(_ count: Int) { gathered.add(Int64(count), ordering: .relaxed) }

    /// Counts bytes that left a buffer, because they were written or discarded.
    func letGo(_ count: Int) { gathered.subtract(Int64(count), ordering: .relaxed) }
}

extension DiskQueue {
    /// Measures the filesystem of `path`: the space available to an ordinary user, and the size.
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
