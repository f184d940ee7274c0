import Base
import CLinux
import Files
import Glibc

/// Small files that the service reads or creates at its start, and reads again on request.
enum LocalFile {
    /// A file's bytes, up to 1 MiB; nil with `errno` set if it cannot be read.
    static func read(_ path: String) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < 1 << 20 {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { return nil }
            if count == 0 { return bytes }
            bytes += buffer[..<count]
        }
        return bytes
    }

    /// Creates a file that only its owner may read; an existing one stays. The name appears with the complete, synced
    /// file, because no later start could use an incomplete key.
    static func create(_ path: String, _ bytes: [UInt8]) throws(SystemError) {
        let partial = "\(path).partial"
        unlink(partial)
        defer { unlink(partial) }
        let file = try OpenFile.open(partial, O_WRONLY | O_CREAT | O_EXCL)
        try file.write(bytes, at: 0)
        try file.sync()
        guard clinux_rename(AT_FDCWD, partial, AT_FDCWD, path, 0) == 0 || errno == EEXIST else {
            throw SystemError("rename", errno: errno)
        }
        let name = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        guard syncFolder(name) else { throw SystemError("fsync", errno: errno) }
    }

    /// Makes the entries of a folder durable. False with `errno` set if that fails.
    private static func syncFolder(_ path: String) -> Bool {
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return fsync(descriptor) == 0
    }

    /// The absolute path, relative to the working folder.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/") else { return path }
        guard let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        let relative = path.hasPrefix("./") ? String(path.dropFirst(2)) : path
        return String(cString: folder) + "/" + relative
    }

    /// The path without symbolic links; the path itself if it does not exist.
    static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Length in bytes; nil if the file does not exist.
    static func size(_ path: String) -> Int64? {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Creates a folder that only its owner may enter, and its parents, and makes them durable. False with `errno` set
    /// if that fails.
    static func makeFolder(_ path: String) -> Bool {
        if isFolder(path) { return true }
        let slash = path.lastIndex(of: "/")
        if let slash, slash != path.startIndex, !makeFolder(String(path[..<slash])) { return false }
        guard mkdir(path, 0o700) == 0 else { return errno == EEXIST }
        if syncFolder(slash.map { String(path[...$0]) } ?? ".") { return true }
        // So that the next start syncs its entry.
        let reason = errno
        rmdir(path)
        errno = reason
        return false
    }
}

/// The lock that keeps a second instance out of a data folder.
///
/// An open-file-description lock (`F_OFD_SETLK`): closing another descriptor of the file does not release it, and the
/// kernel releases it whenever the process ends.
final class FolderLock {
    /// `F_OFD_SETLK`, which Swift's Glibc lacks.
    private static let setLock: Int32 = 37

    private let descriptor: Int32

    /// - Parameter remedy: Advice if another process holds the folder.
    init(_ folder: String, remedy: String) throws(Serve.Failure) {
        let path = "\(folder)/lock"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Serve.Failure(text: "\(path): cannot be opened: \(String(cString: strerror(errno)))")
        }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        guard fcntl(descriptor, Self.setLock, &lock) == 0 else {
            let reason = errno
            close(descriptor)
            guard reason == EAGAIN || reason == EACCES else {
                throw Serve.Failure(text: "\(path): cannot be locked: \(String(cString: strerror(reason)))")
            }
            throw Serve.Failure(
                text: "\(folder) is in use by another urlsessiond; \(remedy)", status: Command.Exit.inUse)
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }
}
