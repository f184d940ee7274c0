package import Base
import Glibc

/// Space reserved for a start on a full disk: with it the database can open and recover the tasks in flight.
extension DataFolder {
    private static let reserve = "reserve"
    private static let reserveLength: Int64 = 8 << 20

    /// Creates the reserve if it is missing, or not whole because a kill came before its end, and many times its size is
    /// free.
    package func keepReserve(within room: DiskRoom) async throws(SystemError) {
        let path = absolute(Self.reserve)
        guard room.left / 8 > Self.reserveLength else { return }
        try await disk.run { () throws(SystemError) in
            let file = try OpenFile.open(path, O_WRONLY | O_CREAT)
            guard try file.size() < Self.reserveLength else { return }
            let code = posix_fallocate(file.descriptor, 0, off_t(Self.reserveLength))
            guard code == 0 else {
                unlink(path)
                throw SystemError("posix_fallocate", errno: code)
            }
        }
    }

    /// Removes the reserve if less than its size is free. Blocks: for a start.
    package static func releaseReserve(of folder: String) {
        var status = statvfs()
        guard statvfs(folder, &status) == 0,
            UInt64(status.f_bavail) * UInt64(status.f_frsize) < UInt64(reserveLength)
        else { return }
        unlink("\(folder)/\(reserve)")
    }
}
