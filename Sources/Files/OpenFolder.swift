package import Base
import CLinux
import Glibc

/// An open folder below a root that other programs may write to as well. Paths are resolved beneath the folder: the
/// kernel rejects absolute paths, a `..` that leaves the folder, and symbolic links (`EXDEV`, `ELOOP`).
///
/// Its methods block, like those of ``OpenFile``.
package struct OpenFolder: Sendable {
    package enum Kind: Sendable { case folder, symbolicLink, other }

    package struct Entry: Sendable {
        /// The bytes of the name with a final 0: other programs may use names that are no text.
        package let name: [CChar]
        package let kind: Kind

        package var text: String { name.withUnsafeBytes { String(decoding: $0.dropLast(), as: UTF8.self) } }
    }

    let file: OpenFile
    private var descriptor: Int32 { file.descriptor }

    /// Opens a folder below `root`.
    ///
    /// - Returns: `nil` if the folder does not exist and is not to be created.
    package static func open(root: String, path: String, creates: Bool) throws(SystemError) -> OpenFolder? {
        if creates { return OpenFolder(file: try Disk.folderBeneath(root: root, path: path)) }
        return try OpenFolder(file: OpenFile.open(root, O_RDONLY | O_DIRECTORY)).folder(path)
    }

    // MARK: Folders

    /// `nil` if the folder does not exist.
    package func folder(_ path: UnsafePointer<CChar>) throws(SystemError) -> OpenFolder? {
        try found { () throws(SystemError) in
            OpenFolder(file: try Disk.openBeneath(file, path, O_RDONLY | O_DIRECTORY))
        }
    }

    /// Opens a folder beneath this one. Missing parts are created, and all users may read them.
    ///
    /// - Parameter durably: Whether the names of new folders are durable then.
    package func makeFolder(_ path: String, durably: Bool = false) throws(SystemError) -> OpenFolder {
        let made = try Disk.folderBeneath(file, path) { parent, folder throws(SystemError) in
            try OpenFolder(file: folder).permitReading()
            if durably { try Disk.syncFolder(parent) }
        }
        return OpenFolder(file: made)
    }

    private func permitReading() throws(SystemError) {
        guard fchmod(descriptor, 0o755) == 0 else { throw SystemError("fchmod", errno: errno) }
    }

    /// Makes the entries durable.
    package func sync() throws(SystemError) { try Disk.syncFolder(file) }

    /// Permits all users to read the folder, and makes that and the entries durable.
    package func publish() throws(SystemError) {
        try permitReading()
        try sync()
    }

    /// The first `limit` entries in no order, without `.` and `..`.
    package func entries(upTo limit: Int = .max) throws(SystemError) -> [Entry] {
        let own = openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard own >= 0 else { throw SystemError("openat", errno: errno) }
        guard let stream = fdopendir(own) else {
            close(own)
            throw SystemError("fdopendir", errno: errno)
        }
        defer { closedir(stream) }
        var found: [Entry] = []
        while found.count < limit, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                bytes.prefix { $0 != 0 }.map { CChar(bitPattern: $0) } + [0]
            }
            guard name != [0x2E, 0], name != [0x2E, 0x2E, 0] else { continue }
            found.append(Entry(name: name, kind: kind(of: name, Int(entry.pointee.d_type))))
        }
        return found
    }

    /// Not every filesystem lists the kinds of its entries (readdir(3)).
    private func kind(of name: [CChar], _ listed: Int) -> Kind {
        switch listed {
        case Int(DT_DIR): return .folder
        case Int(DT_LNK): return .symbolicLink
        case Int(DT_UNKNOWN): break
        default: return .other
        }
        switch status(of: name).map({ $0.st_mode & S_IFMT }) {
        case S_IFDIR: return .folder
        case S_IFLNK: return .symbolicLink
        default: return .other
        }
    }

    // MARK: Files and links

    /// A regular file; `nil` if there is none, or an entry of another kind.
    package func regularFile(_ path: String) throws(SystemError) -> OpenFile? {
        try found([ENOENT, ELOOP, EINVAL, ENXIO]) { () throws(SystemError) in
            try Disk.openRegularBeneath(file, path)
        }
    }

    /// Creates a file of the service's user, for reading and writing.
    package func create(_ name: String) throws(SystemError) -> OpenFile {
        let descriptor = openat(descriptor, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw SystemError("openat", errno: errno) }
        return OpenFile(descriptor: descriptor)
    }

    /// Gives the file at the absolute path `source` a further name.
    ///
    /// - Returns: False if the filesystems or the number of names do not permit it, so that a copy is needed.
    package func link(_ source: String, as name: String) throws(SystemError) -> Bool {
        guard linkat(AT_FDCWD, source, descriptor, name, 0) == 0 else {
            if [EXDEV, EMLINK, EPERM, EOPNOTSUPP].contains(errno) { return false }
            throw SystemError("linkat", errno: errno)
        }
        return true
    }

    /// The text of a symbolic link; `nil` if there is none, or an entry of another kind.
    package func symbolicLink(_ name: UnsafePointer<CChar>) throws(SystemError) -> String? {
        var text = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlinkat(descriptor, name, &text, text.count)
        if count >= 0 { return text.withUnsafeBytes { String(decoding: $0.prefix(count), as: UTF8.self) } }
        guard errno == ENOENT || errno == EINVAL else { throw SystemError("readlinkat", errno: errno) }
        return nil
    }

    /// Makes a symbolic link atomically, in place of an entry that is no folder.
    ///
    /// - Parameters:
    ///   - path: Missing folders are created, and all users may read them.
    ///   - temporary: An unused name in `other`.
    package func setSymbolicLink(
        _ path: String, to text: String, through other: OpenFolder, _ temporary: String
    ) throws(SystemError) {
        let (parent, name) = try Disk.split(path)
        let folder = try makeFolder(parent)
        guard try folder.symbolicLink(name) != text else { return }
        guard symlinkat(text, other.descriptor, temporary) == 0 else { throw SystemError("symlinkat", errno: errno) }
        try other.move(temporary, to: folder, as: name)
    }

    // MARK: Entries of any kind

    package func contains(_ name: String) -> Bool { status(of: name) != nil }

    private func status(of name: UnsafePointer<CChar>) -> stat? {
        var status = stat()
        return fstatat(descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    /// Moves an entry atomically, and replaces one that is no folder, or an empty folder by a folder.
    ///
    /// - Parameter path: Below `other`. Missing folders are created, and all users may read them.
    /// - Returns: False if the entry does not exist.
    @discardableResult
    package func move(
        _ name: UnsafePointer<CChar>, to other: OpenFolder, as path: String
    ) throws(SystemError) -> Bool {
        let (parent, last) = try Disk.split(path)
        let target = try other.makeFolder(parent)
        if renameat(descriptor, name, target.descriptor, last) == 0 { return true }
        guard errno == ENOENT else { throw SystemError("renameat", errno: errno) }
        return false
    }

    /// Removes an entry that is no folder.
    ///
    /// - Returns: False if it is one. True also if there is no entry.
    @discardableResult
    package func remove(_ name: UnsafePointer<CChar>) throws(SystemError) -> Bool {
        if unlinkat(descriptor, name, 0) == 0 || errno == ENOENT { return true }
        guard errno == EISDIR else { throw SystemError("unlinkat", errno: errno) }
        return false
    }

    /// Removes a folder, and the folders on the way to it, as far as they are empty.
    package func removeEmptyFolders(_ path: String) throws(SystemError) {
        var parts = path.split(separator: "/").map(String.init)
        while let name = parts.popLast() {
            guard let parent = try parts.isEmpty ? self : folder(parts.joined(separator: "/")) else { continue }
            if unlinkat(parent.descriptor, name, AT_REMOVEDIR) == 0 || errno == ENOENT { continue }
            guard errno == ENOTEMPTY else { throw SystemError("unlinkat", errno: errno) }
            return
        }
    }

    /// Removes the entry `name`, or up to `limit` entries of the folder `name`. Folders within are moved out of it, so
    /// that trees of any depth are removed in steps without recursion.
    ///
    /// - Parameters:
    ///   - newName: Names a folder that is moved into this one.
    ///   - onLink: Called with the text of each symbolic link before the link is removed.
    /// - Returns: The names of folders that were moved into this one; `nil` once the entry is gone.
    package func removeSome(
        of name: String, limit: Int = 1000, newName: () -> String, onLink: (String) throws(SystemError) -> Void
    ) throws(SystemError) -> [String]? {
        if try remove(name) { return nil }
        guard let folder = try folder(name) else { return nil }
        let entries = try folder.entries(upTo: limit)
        guard !entries.isEmpty else {
            try removeEmptyFolders(name)
            return nil
        }
        var moved: [String] = []
        for entry in entries {
            if entry.kind == .symbolicLink, let text = try folder.symbolicLink(entry.name) { try onLink(text) }
            guard try !folder.remove(entry.name) else { continue }
            moved.append(newName())
            try folder.move(entry.name, to: self, as: moved[moved.count - 1])
        }
        return moved
    }

    /// `nil` if `open` fails because there is nothing that it opens.
    private func found<Value>(
        _ codes: [Int32] = [ENOENT], _ open: () throws(SystemError) -> Value
    ) throws(SystemError) -> Value? {
        do throws(SystemError) {
            return try open()
        } catch {
            guard codes.contains(error.errno) else { throw error }
            return nil
        }
    }
}
