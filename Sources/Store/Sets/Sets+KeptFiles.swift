package import Core
import Formats
import SQL

/// A kept file with its bytes.
package struct KeptSetFile: Sendable {
    package let file: SetManifestFile
    package let storage: BodyLocation.Storage

    /// The name of the bytes in the cache of huggingface_hub: the listed digest.
    package var blobName: String { file.expectedDigest?.value ?? file.digest.value }
}

extension Store.Sets {
    /// The kept files of a version with their bytes, in the order of their paths, after a path.
    ///
    /// - Parameter isUnverified: Whether to leave out the files of which the listed digest is known to be theirs, and
    ///   those without a listed digest.
    package func keptFiles(
        of version: SetVersionID, after path: String, limit: Int, isUnverified: Bool = false
    ) async throws -> [KeptSetFile] {
        try await read(version) { row, db in
            try db.all(
                """
                SELECT path, file_document, length, algorithm, digest, response_document, bytes, file, object \
                FROM set_file WHERE version = ?1 AND path > ?2 AND state = 'kept' \
                AND (CAST(?4 AS BIGINT) = 0 OR listed <> algorithm || ':' || digest) ORDER BY path LIMIT ?3
                """, version.rawValue, path, limit, isUnverified
            ) { try self.keptFile($0, row) }
        }
    }

    /// The paths of the kept files of a version.
    package func keptPaths(of version: SetVersionID) async throws -> [String] {
        try await database.read { db in
            try db.all("SELECT path FROM set_file WHERE version = ?1 AND state = 'kept'", version.rawValue) {
                $0.text(0)
            }
        }
    }

    /// The files with the given paths that are kept.
    package func keptFiles(_ paths: [String], of version: SetVersionID) async throws -> [KeptSetFile] {
        try await read(version) { row, db in
            try db.allOfEach(
                """
                SELECT path, file_document, length, algorithm, digest, response_document, bytes, file, object \
                FROM set_file WHERE version = ?1 AND path = ?2 AND state = 'kept'
                """, paths.map { [version.rawValue, $0] }
            ) { try self.keptFile($0, row) }.joined().map(\.self)
        }
    }

    private func read<T: Sendable>(
        _ version: SetVersionID, _ body: @escaping @Sendable (VersionRow, Connection) throws -> T
    ) async throws -> T {
        try await database.read { db in try body(self.row(version, db).orNotFound(), db) }
    }

    /// The digests of kept files of a version, by path; in the order of `paths`.
    package func digests(of paths: [String], in version: SetVersionID) async throws -> [ContentDigest?] {
        try await database.read { db in
            try db.allOfEach(
                "SELECT algorithm, digest FROM set_file WHERE version = ?1 AND path = ?2 AND state = 'kept'",
                paths.map { [version.rawValue, $0] }
            ) { ContentDigest(algorithm: try $0.value("algorithm"), value: $0.text("digest")) }.map(\.first)
        }
    }

    /// A kept file of a version.
    ///
    /// - Throws: ``DomainError/notFound``.
    package func keptFile(at path: String, of version: SetVersionID) async throws -> KeptSetFile {
        try await keptFiles([path], of: version).first.orNotFound()
    }

    private func keptFile(_ row: Row, _ version: VersionRow) throws -> KeptSetFile {
        let file = try documents.decode(
            SetFile.self, row.blob("file_document"),
            sealedAs: SetVersionDocument.context(version.version.publicId))
        let bytes = try SetFileBytes(row)
        var shown = SetManifestFile(
            path: row.text("path"), length: bytes.length, digest: bytes.digest, address: file.request.address)
        shown.expectedDigest = file.expectedDigest
        if let document = bytes.response {
            let response = try documents.decode(SetFileResponse.self, document)
            shown.entityTag = response.entityTag
            shown.lastModified = response.lastModified
            shown.mimeType = response.mimeType
            shown.fetchedAt = response.fetchedAt
        }
        let object = bytes.place.object.map { StoredObject(key: $0, length: bytes.length) }
        guard
            let storage = object.map({ BodyLocation.Storage.objects([$0]) })
                ?? bytes.place.file.map({ .file($0) }) ?? bytes.place.bytes.map({ .bytes($0) })
        else { throw DomainError.notFound }
        return KeptSetFile(file: shown, storage: storage)
    }
}

/// The bytes of a kept file, and what is known of them.
struct SetFileBytes {
    var length: Int64
    var digest: ContentDigest
    var response: [UInt8]?
    var place: StoredPlace

    init(length: Int64, digest: ContentDigest, response: [UInt8]?, place: StoredPlace) {
        self.length = length
        self.digest = digest
        self.response = response
        self.place = place
    }

    init(_ row: Row) throws {
        self.init(
            length: row.integer("length"),
            digest: ContentDigest(algorithm: try row.value("algorithm"), value: row.text("digest")),
            response: row.blobOrNil("response_document"), place: StoredPlace(row))
    }
}
