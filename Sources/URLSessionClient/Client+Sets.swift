public import Wire

/// Sets: many files that are published as one version.
extension Client {
    /// Creates a set, or changes it. Absent members have their defaults in a new set, and stay in an existing one.
    public func putSet(_ name: String, _ put: FileSetPut = FileSetPut()) async throws -> FileSet {
        try await send("PUT", Self.path(ofSet: name), body: put.jsonBytes)
    }

    /// A set, with its current version and the versions that are kept.
    public func set(_ name: String) async throws -> FileSet { try await send("GET", Self.path(ofSet: name)) }

    /// A page of the app's sets; a `nextCursor` reads the next one.
    public func sets(cursor: String? = nil, limit: Int = 100) async throws -> Page<FileSet> {
        try await page(["v1", "sets"], cursor, limit)
    }

    /// Deletes a set. Its files are removed soon afterwards.
    ///
    /// - Parameter keepingFiles: Whether those of the current version stay at the destination.
    public func deleteSet(_ name: String, keepingFiles: Bool = false) async throws {
        _ = try await exchange("DELETE", Self.path(ofSet: name), query: keepingFiles ? ["keepFiles": "1"] : [:])
    }

    // MARK: Versions

    /// Creates a version from up to 10,000 files or from a source. With a `version` it is safe to repeat.
    public func createVersion(_ creation: SetVersionCreation, ofSet name: String) async throws -> SetVersion {
        try await send(
            "POST", Self.path(ofSet: name) + ["versions"], body: creation.jsonBytes(expecting: 1 << 16),
            mayTakeLong: true)
    }

    /// Creates a version from up to 100,000 files, which are sent as lines. With a `version` it is safe to repeat.
    ///
    /// - Parameter files: Read once. Only their lines are in memory, until they are sent.
    public func createVersion(
        _ head: SetVersionHead, files: some Sequence<SetVersionFile>, ofSet name: String
    ) async throws -> SetVersion {
        var lines = head.jsonBytes
        for file in files {
            lines.append(UInt8(ascii: "\n"))
            lines += file.jsonBytes(expecting: 256)
        }
        return try await createVersion(lines: lines, ofSet: name)
    }

    /// Creates a version from lines of JSON: first a ``Wire/SetVersionHead``, then a ``Wire/SetVersionFile`` on each.
    package func createVersion(lines: [UInt8], ofSet name: String) async throws -> SetVersion {
        try await send(
            "POST", Self.path(ofSet: name) + ["versions"], body: lines, mediaType: "application/x-ndjson",
            mayTakeLong: true)
    }

    /// A version by its name or `versionId`.
    public func version(_ version: String, ofSet name: String) async throws -> SetVersion {
        try await send("GET", Self.path(ofSet: name, version))
    }

    /// A page of the versions of a set, in all states.
    public func versions(
        ofSet name: String, cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<SetVersion> {
        try await page(Self.path(ofSet: name) + ["versions"], cursor, limit)
    }

    /// Fetches the failed files of a failed version again.
    public func retryVersion(_ version: String, ofSet name: String) async throws -> SetVersion {
        try await send("POST", Self.path(ofSet: name, version) + ["retry"], mayTakeLong: true)
    }

    /// Gives a version up.
    public func cancelVersion(_ version: String, ofSet name: String) async throws -> SetVersion {
        try await send("POST", Self.path(ofSet: name, version) + ["cancel"], mayTakeLong: true)
    }

    /// Makes a kept version current again.
    public func switchSet(_ name: String, to version: String) async throws -> FileSet {
        try await send(
            "POST", Self.path(ofSet: name) + ["current"], body: SetSwitch(version: version).jsonBytes, mayTakeLong: true
        )
    }

    // MARK: Reading

    /// The manifest of a published version, by default of the current one.
    public func manifest(ofSet name: String, version: String? = nil) async throws -> SetManifest {
        try await send("GET", Self.path(ofSet: name, version) + ["manifest"], mayTakeLong: true)
    }

    /// The bytes of a file of the current version, all of them in memory.
    ///
    /// To read several files of one version, name the version of ``manifest(ofSet:version:)`` in each call of
    /// ``file(_:ofSet:version:from:each:)``.
    public func currentFile(_ path: String, ofSet name: String) async throws -> [UInt8] {
        try await exchange("GET", Self.path(ofSet: name) + ["files", path])
    }

    /// Passes the bytes of a file of a published version from an offset to the end to `use`, in pieces.
    ///
    /// If the service becomes unavailable, the call waits for up to a minute and a half.
    public func file(
        _ path: String, ofSet name: String, version: String, from offset: Int64 = 0, each use: (Piece) throws -> Void
    ) async throws {
        try await bytes(at: Self.path(ofSet: name, version) + ["files", path], from: offset, each: use)
    }

    /// Saves a file of a published version, which appears completely or not at all, has the digest of the manifest, and
    /// is synced when the call returns.
    ///
    /// Until then the bytes are beside it in `.NAME.part-DIGEST`. The next call for the same file resumes.
    ///
    /// - Parameters:
    ///   - file: The file in the manifest of the version.
    ///   - path: The path of the local file. Its folder must exist.
    ///   - replacing: Whether an existing file of that name is replaced; otherwise the call throws.
    ///   - progress: Called after each piece with the saved and the total number of bytes.
    /// - Throws: ``ClientError/file(_:code:)`` with `EEXIST` if a file of that name exists;
    ///   ``ClientError/contentChanged`` for bytes of another length or digest.
    public func file(
        _ file: SetManifestFile, ofSet name: String, version: String, to path: String, replacing: Bool = false,
        progress: @Sendable (_ received: Int64, _ length: Int64) -> Void = { _, _ in }
    ) async throws {
        let content = Content { ($0.length, $0.digest) = (file.length, file.digest) }
        try await save(
            Self.path(ofSet: name, version) + ["files", file.path], content, to: path, replacing: replacing,
            verifying: true, progress: progress)
    }

    private static func path(ofSet name: String, _ version: String? = nil) -> [String] {
        ["v1", "sets", name] + (version.map { ["versions", $0] } ?? [])
    }
}
