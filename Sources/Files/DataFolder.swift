package import Base
package import Formats
import Glibc

/// The data folder: the locations of its files by purpose, and the operations that place, move and remove them.
///
/// Paths are relative to it.
package struct DataFolder: Sendable {
    package let path: String
    package private(set) var disk: DiskQueue
    /// Files that this run has placed or is about to place, and that no commit refers to yet.
    private let staged = Locked<Set<String>>([])

    package init(path: String, disk: DiskQueue) {
        self.path = path
        self.disk = disk
    }

    /// The same folder for the work of one owner, as ``DiskQueue/of(_:)``.
    package func of(_ owner: Int64) -> DataFolder {
        var folder = self
        folder.disk = disk.of(owner)
        return folder
    }

    package func absolute(_ relative: String) -> String { "\(path)/\(relative)" }
}

// MARK: - Places

extension DataFolder {
    /// Written by the handler of a fatal signal. The next start counts the crash.
    package static let crashMark = "crashed"

    /// The path of a transfer's partial file, by the number of its task.
    package func partial(_ task: Int64) -> String { partial("\(task)") }

    /// The number of the task whose transfer writes a partial file; `nil` for another file.
    package func task(ofPartial file: String) -> Int64? {
        file.hasPrefix("partial/") ? Int64(file.dropFirst("partial/".count)) : nil
    }

    /// The path of a file without a final place yet.
    package func partial(_ name: String) -> String { "partial/\(name)" }

    /// The path of a task's finished content. The last two digits spread the files over folders.
    package func content(_ task: Int64) -> String { "contents/\(Self.shard(task))/\(task)" }

    /// The path of a copy of a content that is moved to its task's destination, or that is none of its task.
    package func sharedContent(_ task: Int64) -> String { "\(content(task)).shared" }

    package func body(_ publicId: String) -> String {
        "bodies/\(Self.shard(publicId.utf8.reduce(0) { ($0 &* 31 &+ Int64($1)) & 0xFF }))/\(publicId)"
    }

    /// The folders that hold files.
    package static var folders: [String] {
        ["partial"] + ["contents", "bodies"].flatMap { area in (0..<256).map { "\(area)/\(shard(Int64($0)))" } }
    }

    private static func shard(_ number: Int64) -> String {
        let digits = String(number & 0xFF, radix: 16)
        return digits.count < 2 ? "0" + digits : digits
    }
}

// MARK: - Deeds

extension DataFolder {
    /// Creates the missing folders, and syncs their names: a power cut that loses a folder's name loses its files,
    /// however well these are synced.
    package func prepare() async throws(SystemError) {
        let areas = ["contents", "bodies"].map(absolute)
        let paths = areas + Self.folders.map(absolute)
        try await disk.run { () throws(SystemError) in
            for path in paths where mkdir(path, 0o700) != 0 && errno != EEXIST {
                throw SystemError("mkdir", errno: errno)
            }
            for path in areas + [path] { try Disk.syncFolder(path) }
        }
    }

    /// Registers a file before it is created.
    package func stage(_ file: String) -> StagedFile {
        staged.withLock { _ = $0.insert(file) }
        return StagedFile(path: file, folder: self)
    }

    /// Unregisters a staged file. A file that no commit adopted is removed first, on a disk thread.
    func end(_ file: String, removes: Bool) {
        guard removes else { return forget(file) }
        remove(file) { [self] in forget(file) }
    }

    private func forget(_ file: String) { staged.withLock { _ = $0.remove(file) } }

    /// The files in one of the ``folders`` that are not staged.
    package func unstagedFiles(in folder: String) async throws(SystemError) -> [String] {
        let files = try await disk.list(absolute(folder)).map { "\(folder)/\($0)" }
        return staged.withLock { staged in files.filter { !staged.contains($0) } }
    }

    package func open(_ file: String, _ flags: Int32 = O_RDONLY) async throws(SystemError) -> OpenFile {
        try await disk.open(absolute(file), flags)
    }

    /// Writes a file, replacing an existing one, and syncs it.
    package func write(_ bytes: [UInt8], to file: String) async throws(SystemError) {
        try await disk.write(bytes, to: absolute(file), replace: true)
    }

    /// Digests of a file, read from its start to its end.
    package func digest(
        _ file: String, _ algorithms: [DigestAlgorithm]
    ) async throws(SystemError) -> [DigestAlgorithm: [UInt8]] {
        try await disk.digest(open(file), algorithms).digests
    }

    /// The length in bytes; `nil` if the file does not exist.
    package func size(_ file: String) async throws(SystemError) -> Int64? { try await disk.size(absolute(file)) }

    /// Moves a file, replacing an existing one, and syncs the folders.
    package func move(_ file: String, to place: String) async throws(SystemError) {
        try await disk.move(absolute(file), to: absolute(place), replace: true)
    }

    /// Copies a file, replacing an existing one, and syncs the copy. Shares blocks if the filesystem can.
    package func copy(_ file: String, to place: String) async throws(SystemError) {
        let source = try await open(file)
        try await remove(place)
        try await disk.copy(source, to: absolute(place))
    }

    /// Removes a file, if it exists.
    ///
    /// - Parameter durably: Whether another file may get the name, for which a power cut must not return this one.
    package func remove(_ file: String, durably: Bool = false) async throws(SystemError) {
        try await disk.remove(absolute(file), durably: durably)
    }

    /// Removes a file, if it exists, then calls `body` on a disk thread. After the queue was closed, the file stays.
    package func remove(_ file: String, durably: Bool = false, then body: @escaping @Sendable () -> Void) {
        disk.remove(absolute(file), durably: durably, then: body)
    }

    /// Removes the crash marker durably.
    package func removeCrashMark() async throws(SystemError) {
        try await remove(Self.crashMark)
        try await disk.syncFolder(path)
    }

    /// The length of a task's partial file after a kill; `nil` if there is none. Blocks: for a start, before any
    /// transfer.
    package func recoverPartial(_ task: Int64) -> Int64? {
        let partial = absolute(partial(task))
        // The whole file may have its final place already, if the kill preceded the commit that refers to it.
        if access(partial, F_OK) != 0 { rename(absolute(content(task)), partial) }
        return try? OpenFile.open(partial, O_RDONLY).size()
    }

    /// The number of bytes of a task's partial file outside of the ascending ranges.
    package func written(outside ranges: [Range<Int64>], of task: Int64) -> Int64 {
        (try? OpenFile.open(absolute(partial(task)), O_RDONLY).written(outside: ranges)) ?? 0
    }

    /// Keeps only the bytes in the ascending ranges of a file.
    package func keep(_ ranges: [Range<Int64>], of file: String) async throws(SystemError) {
        let path = absolute(file)
        try await disk.run { () throws(SystemError) in
            let file = try OpenFile.open(path, O_RDWR)
            var reached: Int64 = 0
            for range in ranges {
                try file.punch(reached..<range.lowerBound)
                reached = range.upperBound
            }
            try file.truncate(to: reached)
        }
    }
}
