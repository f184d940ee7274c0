import Base
import Glibc

/// A folder of one test. Releasing the last reference removes it with its files.
package final class TemporaryFolder: Sendable {
    /// The absolute path, without a trailing slash.
    package let path: String

    /// - Parameter place: An existing parent folder; `nil` for the default temporary folder (`TMPDIR`).
    package init(in place: String? = nil) {
        let place = place ?? getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        var template = Array("\(place)/urlsessiond-test-XXXXXX".utf8CString)
        precondition(mkdtemp(&template) != nil, "mkdtemp: \(errno)")
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { removeTree(path) }

    /// A folder on another filesystem, to which no file can be renamed; `nil` if there is none.
    package func onOtherFilesystem() -> TemporaryFolder? {
        var (own, other) = (stat(), stat())
        guard stat(path, &own) == 0 else { return nil }
        let places: [String] = ["/dev/shm", "/tmp"].filter { place in
            access(place, W_OK) == 0 && stat(place, &other) == 0 && other.st_dev != own.st_dev
        }
        return places.first.map { TemporaryFolder(in: $0) }
    }

    /// The path of `name` inside the folder.
    package func file(_ name: String) -> String { "\(path)/\(name)" }

    /// Creates a folder inside, with its parents.
    @discardableResult
    package func makeFolder(_ name: String) -> String {
        var current = path
        for part in name.split(separator: "/") {
            current += "/" + part
            mkdir(current, 0o700)
        }
        return current
    }

    /// Writes a file inside and returns its path.
    @discardableResult
    package func write(_ bytes: [UInt8], to name: String) -> String { write(bytes, to: name, O_TRUNC) }

    /// Appends bytes to a file inside.
    package func append(_ bytes: [UInt8], to name: String) { _ = write(bytes, to: name, O_APPEND) }

    private func write(_ bytes: [UInt8], to name: String, _ mode: Int32) -> String {
        let path = file(name)
        let descriptor = open(path, O_WRONLY | O_CREAT | mode | O_CLOEXEC, 0o600)
        precondition(descriptor >= 0, "open \(path): \(errno)")
        defer { close(descriptor) }
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            precondition(count > 0, "write \(path): \(errno)")
            rest = rest.dropFirst(count)
        }
        return path
    }
}

/// Removes a file. False if it did not exist.
package func removeFile(_ path: String) -> Bool { unlink(path) == 0 }

/// The length of a file; `nil` if it does not exist.
package func fileLength(_ path: String) -> Int? {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : nil
}

/// The SHA-256 of a file in lower-case hex; `nil` if it cannot be opened.
package func fileSHA256(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let digest = Digest()
    while true {
        let piece = [UInt8](unsafeUninitializedCapacity: 1 << 20) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
        }
        guard !piece.isEmpty else { return Content.hex(digest.finish()) }
        digest.update(piece)
    }
}

/// All bytes of a file; `nil` if it cannot be opened.
package func readFile(_ path: String) -> [UInt8]? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while true {
        let piece = [UInt8](unsafeUninitializedCapacity: 1 << 16) { buffer, count in
            count = max(0, read(descriptor, buffer.baseAddress, buffer.count))
        }
        guard !piece.isEmpty else { return bytes }
        bytes += piece
    }
}

/// The regular files below a folder, as paths relative to it.
package func filesBelow(_ folder: String) -> [String] {
    entries(of: folder).flatMap { entry -> [String] in
        entry.isFolder ? filesBelow("\(folder)/\(entry.name)").map { "\(entry.name)/\($0)" } : [entry.name]
    }.sorted()
}

private func removeTree(_ path: String) {
    for entry in entries(of: path) {
        let inner = "\(path)/\(entry.name)"
        if entry.isFolder { removeTree(inner) } else { unlink(inner) }
    }
    rmdir(path)
}

/// The entries of a folder.
package func entries(of folder: String) -> [(name: String, isFolder: Bool)] {
    guard let stream = opendir(folder) else { return [] }
    defer { closedir(stream) }
    var result: [(String, Bool)] = []
    while let entry = readdir(stream) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        guard name != ".", name != ".." else { continue }
        var status = stat()
        guard lstat("\(folder)/\(name)", &status) == 0 else { continue }
        result.append((name, status.st_mode & S_IFMT == S_IFDIR))
    }
    return result
}

/// Creates a symbolic link. False on failure.
package func makeSymbolicLink(from path: String, to target: String) -> Bool { symlink(target, path) == 0 }

/// Makes a file executable for its owner.
package func makeExecutable(_ path: String) { chmod(path, 0o700) }
