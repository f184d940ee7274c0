import Base
import Buckets
import Core
import Files
import Formats

/// The published versions of a set as objects below a prefix of one of the operator's buckets:
/// `versions/VERSION/PATH`, `manifests/VERSION.json`, and `current.json`, which readers follow.
///
/// Each step may be repeated, after a kill at any point. The caller performs the steps for one prefix one after the
/// other; other services may write `current.json` as well.
///
/// Errors are ``BucketFault`` and ``SystemError``.
struct SetPrefix: Sendable {
    private let client: BucketClient
    /// Empty, or ending with `/`.
    private let prefix: String
    private let sources: PublishedSources
    /// False once the store has refused to copy from the bucket of contents.
    private let copiesContents = Locked(true)

    private static let objectsAtOnce = 8
    /// The memory of the parts of one object that are in flight at once.
    private static let partMemory: Int64 = 64 << 20
    private static let json = "application/json"
    /// How often other writers of `current.json` may interfere.
    private static let mostRounds = 8

    /// - Parameter prefix: Within the client's own prefix.
    init(_ client: BucketClient, prefix: String, sources: PublishedSources) {
        self.client = client
        self.prefix = prefix.isEmpty || prefix.hasSuffix("/") ? prefix : prefix + "/"
        self.sources = sources
    }

    /// The key of a file.
    func key(_ path: String, of version: String) -> String { "\(versions)\(pathPart(ofVersion: version))/\(path)" }

    /// The last part of the key of a version's manifest.
    func manifestName(of version: String) -> String { pathPart(ofVersion: version) + Self.suffix }

    private var versions: String { "\(prefix)versions/" }
    private var manifests: String { "\(prefix)manifests/" }
    private var pointer: String { "\(prefix)current.json" }

    private static let suffix = ".json"

    // MARK: Placing objects

    /// Places files of a version, up to 1,000 at once.
    func place(_ files: [PublishedFile], of version: String) async throws {
        let isLong = { (file: PublishedFile) in file.length > PartPlan.usual }
        try await inLanes(files.filter { !isLong($0) }, Self.objectsAtOnce) { try await place($0, of: version) }
        for file in files where isLong(file) { try await place(file, of: version) }
    }

    private func place(_ file: PublishedFile, of version: String) async throws {
        let key = key(file.path, of: version)
        if try await holds(file, key) != nil { return }
        if try await copy(file, to: key) { return }
        let terms = terms(of: file)
        do {
            if file.length > PartPlan.usual {
                try await putParts(file, key, terms)
            } else {
                let content = try await sent(try await sources.read(file, 0..<file.length))
                if content.isProven(by: try await client.put(key, content, terms)) { return }
            }
        } catch {
            // The response may have been lost.
            guard (try? await holds(file, key)) != nil else { throw error }
            return
        }
        guard try await holds(file, key) != nil else { throw BucketFault.wrongBytes(file) }
    }

    private func putParts(_ file: PublishedFile, _ key: String, _ terms: ObjectTerms) async throws {
        let plan = PartPlan(expected: file.length)
        let length = plan.length(ofPart: 1)
        let count = Int((file.length - 1) / length + 1)
        let width = Int(min(4, max(1, Self.partMemory / length)))
        try await client.assemble(key, terms, parts: count, width: width) { number, upload in
            let range = plan.offset(ofPart: number)..<min(file.length, plan.offset(ofPart: number + 1))
            let content = try await sent(try await sources.read(file, range), isWhole: false)
            return try await client.putPart(number, of: upload, key, content)
        }
    }

    /// Bytes with their digests, which are computed off Swift's pool.
    private func sent(_ bytes: [UInt8], isWhole: Bool = true) async throws(SystemError) -> SentBytes {
        try await sources.folder.disk.run(.long) { () throws(SystemError) in SentBytes(bytes, isWhole: isWhole) }
    }

    private func mark(of file: PublishedFile) -> String { "\(file.digest.algorithm.rawValue):\(file.digest.value)" }

    private func terms(of file: PublishedFile) -> ObjectTerms { ObjectTerms(mark: mark(of: file)) }

    /// The properties of an object, if it has the file's bytes.
    private func holds(_ file: PublishedFile, _ key: String) async throws(BucketFault) -> BucketClient.ObjectFacts? {
        let found = try await client.object(key)
        return found?.length == file.length && found?.mark == mark(of: file) ? found : nil
    }

    /// Has the store copy the file's bytes.
    ///
    /// - Returns: False if the store does not have the bytes, or does not copy them.
    private func copy(_ file: PublishedFile, to key: String) async throws -> Bool {
        if let earlier = file.earlier, let found = try await holds(file, earlier) {
            let source = BucketClient.CopySource(
                client.bucket, earlier, entityTag: found.entityTag, length: file.length)
            if try await copy(source, of: file, to: key) { return true }
        }
        guard case .objects(let objects) = file.storage, objects.count == 1, copiesContents.withLock({ $0 }),
            let bucket = sources.contents?.bucket, bucket.isBeside(client.bucket)
        else { return false }
        let source = BucketClient.CopySource(bucket, objects[0].key, entityTag: nil, length: file.length)
        if try await copy(source, of: file, to: key) { return true }
        copiesContents.withLock { $0 = false }
        return false
    }

    private func copy(_ source: BucketClient.CopySource, of file: PublishedFile, to key: String) async throws -> Bool {
        do {
            try await client.copy(source, to: key, terms(of: file))
        } catch let fault as BucketFault where fault.remedy != .later {
            return false
        }
        return try await holds(file, key) != nil
    }

    // MARK: Publishing

    func write(manifest: [UInt8], of version: String) async throws {
        let key = manifests + manifestName(of: version)
        _ = try await client.put(key, try await sent(manifest), ObjectTerms(mark: "manifest", mediaType: Self.json))
    }

    /// Writes `current.json`. A store that supports conditions replaces only the object that was read before. If another
    /// writer has replaced that object, it is read and replaced again.
    func point(_ bytes: [UInt8]) async throws(BucketFault) {
        let content = SentBytes(bytes, isWhole: true)
        let terms = ObjectTerms(mark: "current", mediaType: Self.json)
        let heeded = try await client.heededConditions()
        for _ in 0..<Self.mostRounds {
            var condition = WriteCondition.none
            if heeded.absent, heeded.unchanged {
                let found = try await client.object(pointer)
                condition = found.map { $0.entityTag.map(WriteCondition.unchanged) ?? .none } ?? .absent
            }
            do throws(BucketFault) {
                _ = try await client.put(pointer, content, terms, if: condition)
                return
            } catch {
                guard error.isOfCondition, condition != .none else { throw error }
            }
        }
        throw .unexpected("Other programs keep writing \(pointer).")
    }

    // MARK: Removing

    /// Removes a version that readers do not follow any more, the manifest first.
    func remove(_ version: String) async throws { try await remove(named: pathPart(ofVersion: version)) }

    private func remove(named name: String) async throws {
        try await client.delete(manifests + name + Self.suffix)
        let start = "\(versions)\(name)/"
        try await abortUploads(below: start)
        var last: String?
        while case let page = try await client.objects(below: start, after: last), let next = page.last?.key,
            next != last
        {
            try await inLanes(page, Self.objectsAtOnce) { try await client.delete($0.key) }
            last = next
        }
    }

    /// Aborts interrupted uploads, except those of versions that are kept.
    private func abortUploads(below start: String, keeping kept: Set<String> = []) async throws(BucketFault) {
        var marker: S3Answer.Uploads.Marker?
        repeat {
            let page = try await client.uploads(below: start, after: marker)
            for upload in page.uploads where !kept.contains(firstPart(of: upload.key, below: versions)) {
                try await client.abortUpload(upload.id, upload.key)
            }
            guard page.next != marker else { return }
            marker = page.next
        } while marker != nil
    }

    func removePointer() async throws(BucketFault) { try await client.delete(pointer) }

    /// Removes everything that the service placed.
    ///
    /// - Parameter version: The version that stays, with `current.json`.
    func removeAll(keeping version: String?) async throws {
        if version == nil { try await removePointer() }
        try await sweep(keeping: Set([version].compactMap(\.self)))
    }

    /// Removes all versions except the named ones, and the leftovers of interrupted steps.
    func sweep(keeping versions: Set<String>) async throws {
        let kept = Set(versions.map(pathPart))
        for name in try await names(below: manifests) where name.hasSuffix(Self.suffix) {
            let version = String(name.dropLast(Self.suffix.count))
            if !kept.contains(version) { try await remove(named: version) }
        }
        for name in try await names(below: self.versions) where !kept.contains(name) {
            try await remove(named: name)
        }
        try await abortUploads(below: self.versions, keeping: kept)
    }

    /// The first parts of the keys below a prefix, one request each.
    private func names(below start: String) async throws(BucketFault) -> [String] {
        var (names, last) = ([String](), String?.none)
        while let key = try await client.objects(below: start, after: last).first?.key {
            let name = firstPart(of: key, below: start)
            guard name != names.last else { break }
            names.append(name)
            // "0" follows "/", so that the other keys with this part are left out.
            last = key == start + name ? key : "\(start)\(name)0"
        }
        return names
    }

    private func firstPart(of key: String, below start: String) -> String {
        String(Substring(key.utf8.dropFirst(start.utf8.count).prefix { $0 != UInt8(ascii: "/") }))
    }
}
