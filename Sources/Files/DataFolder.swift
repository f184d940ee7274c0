package import Base
package import Formats
import Glibc

/// The data folder: where its files are, by what they are for, and who places, moves and removes them.
///
/// Paths are relative to it.
package struct DataFolder: Sendable {
    package let path: String
    package private(set) var disk: DiskQueue
    /// Files that this run has placed, or is about to place, and that no commit tells of yet.
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
    /// Left by a fault of the process before it kills; the next start counts it.
    package static let crashMark = "crashed"

    /// Where the bytes of a transfer under way are kept, by the number of its task.
    package func partial(_ task: Int64) -> String { partial("\(task)") }

    /// Where a file is kept that has no place of its own yet.
    package func partial(_ name: String) -> String { "partial/\(name)" }

    /// Where a task's finished content goes. The last two digits spread the files over folders.
    package func content(_ task: Int64) -> String { "contents/\(Self.shard(task))/\(task)" }

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
    /// Makes the folders that are not there yet.
    package func prepare() async throws(SystemError) {
        let paths = (["contents", "bodies"] + Self.folders).map(absolute)
        try await disk.run { () throws(SystemError) in
            for path in paths where mkdir(path, 0o700) != 0 && errno != EEXIST {
                throw SystemError("mkdir", errno: errno)
            }
        }
    }

    /// Announces a file, before it is made.
    package func stage(_ file: String) -> StagedFile {
        staged.withLock { _ = $0.insert(file) }
        return StagedFile(path: file, folder: self)
    }

    /// Forgets a staged file. One that no commit adopted is removed first, on a disk thread.
    func end(_ file: String, removes: Bool) {
        guard removes else { return forget(file) }
        remove(file) { [self] in forget(file) }
    }

    private func forget(_ file: String) { staged.withLock { _ = $0.remove(file) } }

    /// The files of one of the ``folders`` that do not belong to something under way.
    package func unstagedFiles(in folder: String) async throws(SystemError) -> [String] {
        let files = try await disk.list(absolute(folder)).map { "\(folder)/\($0)" }
        return staged.withLock { staged in files.filter { !staged.contains($0) } }
    }

    package func open(_ file: String, _ flags: Int32 = O_RDONLY) async throws(SystemError) -> OpenFile {
        try await disk.open(absolute(file), flags)
    }

    /// Writes a file, in place of one that may be there, and syncs it.
    package func write(_ bytes: [UInt8], to file: String) async throws(SystemError) {
        try await disk.write(bytes, to: absolute(file), replace: true)
    }

    /// Digests of a file, read from its start to its end.
    package func digest(
        _ file: String, _ algorithms: [DigestAlgorithm]
    ) async throws(SystemError) -> [DigestAlgorithm: [UInt8]] {
        try await disk.digest(open(file), algorithms).digests
    }

    /// Length in bytes, nil where there is no such file.
    package func size(_ file: String) async throws(SystemError) -> Int64? { try await disk.size(absolute(file)) }

    /// Moves a file, in place of one that may be there, and syncs the folders.
    package func move(_ file: String, to place: String) async throws(SystemError) {
        try await disk.move(absolute(file), to: absolute(place), replace: true)
    }

    /// Removes a file. One that is not there is fine.
    package func remove(_ file: String) async throws(SystemError) { try await disk.remove(absolute(file)) }

    /// Removes a file, if it is there, and then runs `body`, on a disk thread. After the queue was closed the file stays.
    package func remove(_ file: String, then body: @escaping @Sendable () -> Void) {
        disk.remove(absolute(file), then: body)
    }

    /// Removes the crash mark durably.
    package func removeCrashMark() async throws(SystemError) {
        try await remove(Self.crashMark)
        try await disk.syncFolder(path)
    }

    /// How much of a task's content is there after a kill; nil for nothing. Blocks: for a start, before anything is under
    /// way.
    package func recoverPartial(_ task: Int64) -> Int64? {
        let partial = absolute(partial(task))
        // A whole file may be in its place already, and the kill came before the commit that tells of it.
        if access(partial, F_OK) != 0 { rename(absolute(content(task)), partial) }
        return try? OpenFile.open(partial, O_RDONLY).size()
    }

    /// How many bytes of a task's partial file are outside of some ranges, which are in ascending order.
    package func written(outside ranges: [Range<Int64>], of task: Int64) -> Int64 {
        (try? OpenFile.open(absolute(partial(task)), O_RDONLY).written(outside: ranges)) ?? 0
    }

    /// Leaves of a file what is in some ranges, which are in ascending order.
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
