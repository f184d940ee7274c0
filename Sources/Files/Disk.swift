import Base
import CLinux
import Glibc

/// The system calls themselves, which block.
enum Disk {
    static func folder(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    static func syncFolder(_ path: String) throws(SystemError) {
        try syncFolder(OpenFile.open(path, O_RDONLY | O_DIRECTORY))
    }

    static func remove(_ path: String, durably: Bool) throws(SystemError) {
        guard unlink(path) == 0 else {
            if errno == ENOENT { return }
            throw SystemError("unlink", errno: errno)
        }
        if durably { try syncFolder(folder(of: path)) }
    }

    static func syncFolder(_ folder: OpenFile) throws(SystemError) {
        guard fsync(folder.descriptor) == 0 else { throw SystemError("fsync", errno: errno) }
    }

    static func list(_ path: String) throws(SystemError) -> [String] {
        guard let folder = opendir(path) else { throw SystemError("opendir", errno: errno) }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }

    static func openBeneath(root: String, path: String, _ flags: Int32) throws(SystemError) -> OpenFile {
        try openBeneath(OpenFile.open(root, clinux_O_PATH | O_DIRECTORY), path, flags)
    }

    static func openBeneath(
        _ folder: OpenFile, _ path: UnsafePointer<CChar>, _ flags: Int32
    ) throws(SystemError) -> OpenFile {
        let descriptor = clinux_open_beneath(folder.descriptor, path, flags | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw SystemError("openat2", errno: errno) }
        return OpenFile(descriptor: descriptor)
    }

    /// Opens a regular file for reading. Other kinds of files fail with `EINVAL`.
    static func openRegularBeneath(root: String, path: String) throws(SystemError) -> OpenFile {
        try openRegularBeneath(OpenFile.open(root, clinux_O_PATH | O_DIRECTORY), path)
    }

    static func openRegularBeneath(_ folder: OpenFile, _ path: String) throws(SystemError) -> OpenFile {
        let file = try openBeneath(folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
        guard try file.status().st_mode & S_IFMT == S_IFREG else { throw SystemError("openat2", errno: EINVAL) }
        return file
    }

    /// The folder and the last name of a path.
    static func split(_ path: String) throws(SystemError) -> (folder: String, name: String) {
        let slash = path.utf8.lastIndex(of: UInt8(ascii: "/"))
        let name = slash.map { String(path[path.utf8.index(after: $0)...]) } ?? path
        guard !name.isEmpty, name != ".", name != "..", !path.utf8.contains(0), slash != path.startIndex else {
            throw SystemError("rename", errno: EINVAL)
        }
        return (slash.map { String(path[..<$0]) } ?? ".", name)
    }

    /// The folder of a path below `root`, created if missing, and the last name of the path.
    static func placeBeneath(root: String, path: String) throws(SystemError) -> (folder: OpenFile, name: String) {
        let (folder, name) = try split(path)
        return (try folderBeneath(root: root, path: folder), name)
    }

    /// Opens a folder below `root` and creates its missing parts.
    static func folderBeneath(root: String, path: String) throws(SystemError) -> OpenFile {
        try folderBeneath(OpenFile.open(root, O_RDONLY | O_DIRECTORY), path) { parent, _ throws(SystemError) in
            try syncFolder(parent)
        }
    }

    /// Opens a folder below another one and creates its missing parts, one name at a time, so that the kernel checks
    /// each.
    ///
    /// - Parameter onNew: Called with the parent of each new folder, and the folder.
    static func folderBeneath(
        _ start: OpenFile, _ path: String, onNew: (OpenFile, OpenFile) throws(SystemError) -> Void
    ) throws(SystemError) -> OpenFile {
        let flags = O_RDONLY | O_DIRECTORY
        do throws(SystemError) {
            return try openBeneath(start, path, flags)
        } catch {
            guard error.errno == ENOENT else { throw error }
        }
        var folder = start
        // As bytes, because a combining character would join the slash before it.
        for part in path.utf8.split(separator: UInt8(ascii: "/")) {
            let name = String(Substring(part))
            let isNew = mkdirat(folder.descriptor, name, 0o777) == 0
            guard isNew || errno == EEXIST else { throw SystemError("mkdirat", errno: errno) }
            let next = try openBeneath(folder, name, flags)
            if isNew { try onNew(folder, next) }
            folder = next
        }
        return folder
    }
}
