import Base
import Files
import Transfers

extension Service {
    /// Measures the disk periodically, and at once when writes approach its floor.
    func watchDisk() async {
        var isBelowFloor = false
        while !Task.isCancelled {
            _ = await room.bell.wait(until: clock.monotonic() + Self.measuringPeriod)
            guard !Task.isCancelled else { return }
            do {
                try await folder.disk.measure(room, folder.path)
                try await folder.keepReserve(within: room)
                inbox.tell(.measured)
                if isBelowFloor == room.isAboveFloor {
                    isBelowFloor.toggle()
                    tellFloor(isBelow: isBelowFloor)
                }
            } catch {
                log.warning("free disk space could not be measured", ("error", error.description))
            }
            // Coalesces rings of the bell.
            try? await Task.sleep(for: .milliseconds(20))
        }
    }

    private func tellFloor(isBelow: Bool) {
        let log = log.with(("free", room.freeBytes), ("floor", settings.freeDiskFloor))
        if isBelow {
            log.warning("free disk space is below the floor: new content waits, new tasks are refused")
        } else {
            log.info("free disk space is above the floor again")
        }
    }

    /// Milliseconds between two measurements while few bytes are written.
    private static let measuringPeriod: Int64 = 5000
}
