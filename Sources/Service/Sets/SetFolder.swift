import Base
import Buckets
import Core
import Files
import Formats
import Glibc

/// The published versions of a set in a folder below one of the operator's roots.
///
/// A version is staged as `.versions/.new-VERSION`, and receives its final name when it is complete and durable:
/// `.versions/VERSION`, or `snapshots/VERSION` in the cache of huggingface_hub, where an empty folder
/// `.versions/VERSION` marks the snapshots of the service. Each step may be repeated, after a kill at any point. The
/// caller performs the steps for one folder one after the other.
///
/// Errors are ``SystemError``, ``BucketFault`` and ``SetFolderFault``.
struct SetFolder: Sendable {
    enum Layout: Hashable, Sendable {
        case versions
        /// - Parameter revision: The ref that names the current version, such as `main` or `refs/pr/1`.
        case hfCache(repository: String, type: SetSource.RepositoryType, revision: String)
    }

    /// The root on the disk.
    let root: String
    /// Below the root; `.` for the root itself.
    let path: String
    let layout: Layout
    let sources: PublishedSources

    private static let filesAtOnce = 4
    private static let staging = ".new-"
    private static let temporary = ".tmp-"
    private static let trash = ".trash-"

    private static func newName(_ prefix: String) -> String { prefix + RandomBytes.make(8).hexadecimal }

    private var disk: DiskQueue { sources.folder.disk }

    /// The open folders of a set.
    private struct Places: Sendable {
        /// ``SetFolder/path``, or the folder of the repository below it.
        let base: OpenFolder
        /// `.versions`
        let area: OpenFolder
        /// The parent of the complete versions.
        let complete: OpenFolder
        /// In the cache of huggingface_hub.
        let blobs: OpenFolder?

        /// A complete version that the service placed.
        func version(_ name: String) throws(SystemError) -> OpenFolder? {
            guard blobs == nil || area.contains(name) else { return nil }
            return try complete.folder(name)
        }

        /// Moves an entry to the trash, if it exists.
        func discard(_ name: String, in folder: OpenFolder) throws(SystemError) {
            try folder.move(name, to: area, as: SetFolder.newName(SetFolder.trash))
        }
    }

    private func open(creates: Bool) async throws(SystemError) -> Places? {
        try await disk.run { () throws(SystemError) in
            guard let top = try OpenFolder.open(root: root, path: path, creates: creates) else { return nil }
            func folder(_ name: String, in parent: OpenFolder) throws(SystemError) -> OpenFolder? {
                try creates ? parent.makeFolder(name, durably: true) : parent.folder(name)
            }
            let base = if let cache { try folder(cache.folder, in: top) } else { Optional(top) }
            guard let base, let area = try folder(".versions", in: base) else { return nil }
            guard cache != nil else { return Places(base: base, area: area, complete: area, blobs: nil) }
            return Places(
                base: base, area: area, complete: try base.makeFolder("snapshots"), blobs: try base.makeFolder("blobs"))
        }
    }

    /// The folder of the repository and the ref of the current version, below ``path``.
    private var cache: (folder: String, revision: String, ref: String)? {
        guard case .hfCache(let repository, let type, let revision) = layout else { return nil }
        let folder = type.folder(of: repository)
        return (folder, revision, "\(folder)/refs/\(revision)")
    }

    // MARK: Placing files

    /// Places files of a version, up to 1,000 at once. A version without files needs one call, too. The caller has
    /// removed the files of an earlier, failed version of the same name (``remove(_:)``).
    func place(_ files: [PublishedFile], of version: String) async throws {
        let name = pathPart(ofVersion: version)
        guard let places = try await open(creates: true) else { return }
        let folder = try await disk.run { () throws(SystemError) in
            if let version = try places.version(name) { return version }
            return try places.area.makeFolder(Self.staging + name)
        }
        try await inLanes(files, Self.filesAtOnce) { file in
            guard let blobs = places.blobs else { return try await put(file, file.path, in: folder, places.area) }
            // The link comes first, so that each blob of the service has one.
            try await link(file, in: folder, places.area)
            try await put(file, file.blobName, in: blobs, places.area)
        }
    }

    private func link(_ file: PublishedFile, in folder: OpenFolder, _ area: OpenFolder) async throws(SystemError) {
        let depth = file.path.utf8.count { $0 == UInt8(ascii: "/") }
        let text = String(repeating: "../", count: depth + 2) + "blobs/\(file.blobName)"
        try await disk.run { () throws(SystemError) in
            try folder.setSymbolicLink(file.path, to: text, through: area, Self.newName(Self.temporary))
        }
    }

    private func put(
        _ file: PublishedFile, _ path: String, in folder: OpenFolder, _ area: OpenFolder
    ) async throws {
        if try await holds(file, path, in: folder) { return }
        let name = Self.newName(Self.temporary)
        do {
            try await make(file, name, in: area)
            _ = try await disk.run { () throws(SystemError) in
                try area.move(name, to: folder, as: path)
                // rename(2) leaves both names if they are of one file.
                try area.remove(name)
            }
        } catch {
            _ = try? await disk.run { () throws(SystemError) in try area.remove(name) }
            throw error
        }
    }

    /// Whether a path names the content's own file, or a read-only file with the same bytes.
    private func holds(_ file: PublishedFile, _ path: String, in folder: OpenFolder) async throws(SystemError) -> Bool {
        let (found, isOwn) = try await disk.run { () throws(SystemError) -> (OpenFile?, Bool) in
            guard let found = try folder.regularFile(path), try found.isReadOnly() else { return (nil, false) }
            if case .file(let source) = file.storage, try found.isNamed(sources.folder.absolute(source)) {
                return (found, true)
            }
            return try (found.size() == file.length ? found : nil, false)
        }
        guard let found, !isOwn else { return isOwn }
        let algorithm = file.digest.algorithm
        return try await disk.digest(found, [algorithm]).digests[algorithm]?.hexadecimal == file.digest.value
    }

    /// Makes a durable file with the content's bytes: a further name of the content's file if possible, else a copy.
    private func make(_ file: PublishedFile, _ name: String, in area: OpenFolder) async throws {
        if case .file(let path) = file.storage {
            let source = sources.folder.absolute(path)
            let original = try await disk.open(source)
            let isLinked = try await disk.run { () throws(SystemError) in
                guard try area.link(source, as: name) else { return false }
                if try !original.isReadOnly() { try original.makeReadOnly() }
                return true
            }
            if isLinked { return }
            let copy = try await disk.run { () throws(SystemError) in try area.create(name) }
            guard try await disk.copy(original, into: copy).length == file.length else {
                throw BucketFault.wrongBytes(file)
            }
            return try await disk.run { () throws(SystemError) in try copy.makeReadOnly() }
        }
        let made = try await disk.run { () throws(SystemError) in try area.create(name) }
        for start in stride(from: 0, to: file.length, by: Int(PublishedSources.pieceLength)) {
            let piece = start..<min(file.length, start + PublishedSources.pieceLength)
            try await disk.write(sources.read(file, piece), to: made, at: start)
        }
        try await disk.run { () throws(SystemError) in try made.makeReadOnly() }
        guard try await holds(file, name, in: area) else { throw BucketFault.wrongBytes(file) }
    }

    // MARK: Publishing

    /// Makes a version durable and gives it its final name.
    ///
    /// - Parameter count: The number of files that were placed.
    /// - Throws: ``SetFolderFault/otherFiles(_:)`` if the folder has more files, for example those of an earlier version
    ///   of the same name. The folder is removed then, and all files are to be placed again.
    func seal(_ version: String, files count: Int64) async throws {
        let name = pathPart(ofVersion: version)
        guard let places = try await open(creates: false) else { throw Self.missing }
        let (staged, sealed) = try await disk.run { () throws(SystemError) in
            (try places.area.folder(Self.staging + name), try places.version(name))
        }
        guard let folder = staged ?? sealed else { throw Self.missing }
        let found = try await survey(folder)
        guard found.files == count else {
            try await remove([name], from: places)
            throw SetFolderFault.otherFiles(name)
        }
        try await publish(found.folders, of: folder)
        try await disk.run { () throws(SystemError) in
            try places.blobs?.publish()
            if staged != nil {
                if places.blobs != nil {
                    _ = try places.area.makeFolder(name)
                    try places.area.publish()
                }
                // In a cache, another program may have fetched a part of the same commit.
                try places.discard(name, in: places.complete)
                try places.area.move(Self.staging + name, to: places.complete, as: name)
            }
            try places.complete.publish()
            try places.area.publish()
            try places.base.sync()
        }
        try await emptyTrash(of: places)
    }

    /// Makes folders durable, the innermost first.
    private func publish(_ folders: [String], of top: OpenFolder) async throws(SystemError) {
        for path in folders.reversed() {
            try await disk.run { () throws(SystemError) in try top.folder(path)?.publish() }
        }
    }

    private static let missing = SystemError("openat2", errno: ENOENT)

    /// The paths of a folder and of the folders within, each before those that it contains, the names of the blobs to
    /// which links within refer, and the number of files and links.
    private func survey(
        _ top: OpenFolder
    ) async throws(SystemError) -> (folders: [String], blobs: [String], files: Int64) {
        var (folders, blobs, files, index) = (["."], [String](), Int64(0), 0)
        while index < folders.count {
            let path = folders[index]
            let found = try await disk.run(.long) { () throws(SystemError) in
                guard let folder = try top.folder(path) else {
                    return (folders: [String](), blobs: [String](), files: 0)
                }
                let entries = try folder.entries()
                var blobs: [String] = []
                for entry in entries where entry.kind == .symbolicLink {
                    if let text = try folder.symbolicLink(entry.name) { blobs.append(Self.lastPart(of: text)) }
                }
                let within = entries.filter { $0.kind == .folder }.map { "\(path)/\($0.text)" }
                return (within, blobs, entries.count - within.count)
            }
            folders += found.folders
            blobs += found.blobs
            files += Int64(found.files)
            index += 1
        }
        return (folders, blobs, files)
    }

    private static func lastPart(of path: String) -> String { path.split(separator: "/").last.map(String.init) ?? "" }

    /// Makes a sealed version the one that readers follow.
    func point(to version: String) async throws {
        let name = pathPart(ofVersion: version)
        guard let places = try await open(creates: false) else { throw Self.missing }
        let version = try await disk.run { () throws(SystemError) in try places.version(name) }
        guard version != nil else { throw Self.missing }
        if let cache {
            let refs = try await disk.run { () throws(SystemError) in
                let temporary = Self.newName(Self.temporary)
                let file = try places.area.create(temporary)
                try file.write(Array(name.utf8), at: 0)
                try file.makeReadOnly()
                let refs = try places.base.makeFolder("refs")
                try places.area.move(temporary, to: refs, as: cache.revision)
                return refs
            }
            try await publish(try await survey(refs).folders, of: refs)
        } else {
            let isSet = try await disk.run { () throws(SystemError) in
                guard try Self.canPoint(in: places.base) else { return false }
                try places.base.setSymbolicLink(
                    "current", to: ".versions/\(name)", through: places.area, Self.newName(Self.temporary))
                return true
            }
            guard isSet else { throw obstacle }
        }
        try await disk.run { () throws(SystemError) in try places.base.sync() }
    }

    /// Checks that the link to the current version can be set.
    ///
    /// - Throws: ``SetFolderFault/currentIsNoLink(_:)``.
    func checkPointer() async throws {
        guard cache == nil, let places = try await open(creates: false) else { return }
        let canPoint = try await disk.run { () throws(SystemError) in try Self.canPoint(in: places.base) }
        guard canPoint else { throw obstacle }
    }

    private static func canPoint(in base: OpenFolder) throws(SystemError) -> Bool {
        guard base.contains("current") else { return true }
        return try base.symbolicLink("current") != nil
    }

    private var obstacle: SetFolderFault { .currentIsNoLink("\(path)/current") }

    // MARK: Removing

    /// Removes a version that readers do not follow any more. Files of the version that a reader has open stay readable.
    func remove(_ version: String) async throws {
        guard let places = try await open(creates: false) else { return }
        try await remove([pathPart(ofVersion: version)], from: places)
    }

    private func remove(_ names: [String], from places: Places) async throws(SystemError) {
        try await disk.run { () throws(SystemError) in
            for name in names {
                // The mark is removed after the snapshot.
                if places.blobs != nil, places.area.contains(name) { try places.discard(name, in: places.complete) }
                try places.complete.sync()
                for own in [name, Self.staging + name] { try places.discard(own, in: places.area) }
            }
            try places.area.sync()
        }
        try await emptyTrash(of: places)
    }

    /// Removes the entries of the trash, and the blobs to which only the trash refers.
    private func emptyTrash(of places: Places) async throws(SystemError) {
        let (names, staged) = try await disk.run { () throws(SystemError) in
            let entries = try places.area.entries()
            var staged: [OpenFolder] = []
            for entry in entries where entry.kind == .folder && entry.text.hasPrefix(Self.staging) {
                if let folder = try places.area.folder(entry.text) { staged.append(folder) }
            }
            return (entries.map(\.text).filter { $0.hasPrefix(Self.trash) }, staged)
        }
        var (trash, used) = (names, Set<String>())
        guard !trash.isEmpty else { return }
        if places.blobs != nil {
            for folder in staged + [places.complete] { used.formUnion(try await survey(folder).blobs) }
        }
        let others = used
        while let name = trash.last {
            let moved = try await disk.run(.long) { () throws(SystemError) in
                try places.area.removeSome(of: name, newName: { Self.newName(Self.trash) }) {
                    text throws(SystemError) in
                    let blob = Self.lastPart(of: text)
                    if !others.contains(blob) { try places.blobs?.remove(blob) }
                }
            }
            if moved == nil { trash.removeLast() }
            trash += moved ?? []
        }
        try await disk.run { () throws(SystemError) in try places.area.sync() }
    }

    /// Removes the leftovers of interrupted steps, and all versions except the named ones and the one that readers follow.
    func sweep(keeping versions: Set<String>) async throws {
        guard let places = try await open(creates: false) else { return }
        try await sweep(keeping: versions.map(pathPart), places)
    }

    private func sweep(keeping versions: [String], _ places: Places) async throws(SystemError) {
        let kept = Set(versions + [try await current(places)].compactMap(\.self))
        let unknown = try await disk.run { () throws(SystemError) in
            var unknown: Set<String> = []
            for name in try places.area.entries().map(\.text) {
                if name.hasPrefix(Self.temporary) { try places.area.remove(name) }
                let version = name.hasPrefix(Self.staging) ? String(name.dropFirst(Self.staging.count)) : name
                if !version.hasPrefix("."), !kept.contains(version) { unknown.insert(version) }
            }
            return unknown.sorted()
        }
        try await remove(unknown, from: places)
    }

    /// The name of the version that readers follow, if the service placed it.
    private func current(_ places: Places) async throws(SystemError) -> String? {
        guard let cache else {
            let text = try await disk.run { () throws(SystemError) in try places.base.symbolicLink("current") }
            return text?.hasPrefix(".versions/") == true ? text.map(Self.lastPart) : nil
        }
        let read = try await disk.readBeneath([(root: root, path: "\(path)/\(cache.ref)")], upTo: 1024)
        if case .failure(let error) = read.first, ![ENOENT, ELOOP, EINVAL].contains(error.errno) { throw error }
        guard case .success(let bytes?) = read.first else { return nil }
        let name = String(decoding: bytes, as: UTF8.self)
        return try await disk.run { () throws(SystemError) in try places.version(name) == nil ? nil : name }
    }

    /// Removes everything that the service placed, and no files of other programs.
    ///
    /// - Parameter keepingCurrent: Whether the version that readers follow stays, with its link.
    func removeAll(keepingCurrent: Bool) async throws {
        if !keepingCurrent { try await removePointer() }
        if let places = try await open(creates: false) { try await sweep(keeping: [], places) }
        guard !keepingCurrent else { return }
        let names = cache.map { cache in ["blobs", "snapshots", ".versions"].map { "\(cache.folder)/\($0)" } }
        try await removeEmptyFolders(names ?? [".versions"])
    }

    /// Removes the pointer to the current version, if the service placed that version.
    func removePointer() async throws {
        let pointer = cache?.ref ?? "current"
        if let places = try await open(creates: false), try await current(places) != nil {
            try await disk.removeBeneath(root: root, path: "\(path)/\(pointer)")
            try await disk.syncBeneath(root: root, path: "\(path)/\(pointer)")
        }
        try await removeEmptyFolders([pointer.split(separator: "/").dropLast().joined(separator: "/")])
    }

    private func removeEmptyFolders(_ names: [String]) async throws(SystemError) {
        try await disk.run { () throws(SystemError) in
            guard let top = try OpenFolder.open(root: root, path: path, creates: false) else { return }
            for name in names { try top.removeEmptyFolders(name) }
        }
    }
}

/// A state of a set's folder in which the service publishes nothing.
enum SetFolderFault: Error, Hashable, CustomStringConvertible {
    case currentIsNoLink(String)
    case otherFiles(String)

    var description: String {
        switch self {
        case .otherFiles(let version): "The folder of version \(version) had files that the version does not have."
        case .currentIsNoLink(let path): "\(path) exists and is not a symbolic link, so it is not replaced."
        }
    }
}
