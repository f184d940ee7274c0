import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

struct LocalFile: ~Copyable {
    private let path: String
    private let descriptor: Int32

    /// The value of `EEXIST`, for errors.
    static let alreadyExists = EEXIST

    init(reading path: String) throws(ClientError) {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .file(path, code: errno) }
    }

    /// Opens a file for writing, and creates it if it does not exist. Its content stays. Links are not followed.
    init(writing path: String) throws(ClientError) {
        self.path = path
        descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { throw .file(path, code: errno) }
    }

    deinit { close(descriptor) }

    func length() throws(ClientError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .file(path, code: errno) }
        guard status.st_mode & S_IFMT != S_IFDIR else { throw .file(path, code: EISDIR) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .file(path, code: EINVAL) }
        return Int64(status.st_size)
    }

    func truncate() throws(ClientError) {
        guard ftruncate(descriptor, 0) == 0 else { throw .file(path, code: errno) }
    }

    /// Reads up to `count` bytes from an offset.
    func read(at offset: Int64, count: Int) throws(ClientError) -> Data {
        var data = Data(count: count)
        var done = 0
        while done < count {
            let read = data.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress.map { $0 + done }, count - done, off_t(offset) + off_t(done))
            }
            guard read >= 0 || errno == EINTR else { throw .file(path, code: errno) }
            guard read != 0 else { throw .fileShrank(path) }
            done += max(read, 0)
        }
        return data
    }

    func write(_ data: Data, at offset: Int64) throws(ClientError) {
        var done = 0
        while done < data.count {
            let written = data.withUnsafeBytes { buffer in
                pwrite(descriptor, buffer.baseAddress.map { $0 + done }, data.count - done, off_t(offset) + off_t(done))
            }
            guard written >= 0 || errno == EINTR else { throw .file(path, code: errno) }
            done += max(written, 0)
        }
    }

    /// The digest of the whole file, in lower-case hex.
    func sha256() throws(ClientError) -> String {
        var (digest, place, length) = (SHA256(), Int64(0), try length())
        while place < length {
            let piece = try read(at: place, count: Int(min(1 << 20, length - place)))
            digest.update(piece)
            place += Int64(piece.count)
        }
        return digest.finish().map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Syncs the file, renames it in its folder, and syncs the folder.
    ///
    /// - Throws: `EEXIST` if a file of that name exists and may not be replaced, even if it was created just now.
    func publish(as name: String, replacing: Bool) throws(ClientError) {
        guard fsync(descriptor) == 0 else { throw .file(path, code: errno) }
        try rename(to: name, replacing: replacing)
        let folder = Self.folder(of: name)
        let opened = open(folder, O_RDONLY | O_CLOEXEC)
        guard opened >= 0 else { throw .file(folder, code: errno) }
        defer { close(opened) }
        // Some file systems sync folders themselves and return EINVAL.
        guard fsync(opened) == 0 || errno == EINVAL else { throw .file(folder, code: errno) }
    }

    private func rename(to name: String, replacing: Bool) throws(ClientError) {
        if replacing {
            guard moveFile(path, name) == 0 else { throw .file(name, code: errno) }
            return
        }
        if link(path, name) == 0 {
            unlink(path)
            return
        }
        guard errno != EEXIST else { throw .file(name, code: EEXIST) }
        // The file system has no hard links.
        guard !Self.exists(name) else { throw .file(name, code: EEXIST) }
        guard moveFile(path, name) == 0 else { throw .file(name, code: errno) }
    }

    static func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0
    }

    static func remove(_ path: String) { unlink(path) }

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    }

    /// `FOLDER/.NAME` with an ending, within the length limit of file systems.
    static func neighbour(of path: String, ending: String) -> String {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let folder = parts.dropLast().map { $0 + "/" }.joined()
        var name = parts.last.map(String.init) ?? ""
        while name.utf8.count + ending.utf8.count > 254 { name.removeLast() }
        return "\(folder).\(name)\(ending)"
    }
}

/// The system's `rename`, which is shadowed by a method of that name.
private func moveFile(_ path: String, _ name: String) -> Int32 { rename(path, name) }
