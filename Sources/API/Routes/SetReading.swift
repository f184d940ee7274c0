import Base
import Core
import Formats
import HTTPServer
import Service
import Wire
import WireMapping

extension Call {
    // MARK: Manifests

    /// The maximum number of files that are read at once.
    private static let manifestPage = 1000

    func currentManifest() async throws -> HTTPResponse {
        let set = try await set()
        return try await manifest(of: current(of: set), in: set)
    }

    func versionManifest() async throws -> HTTPResponse {
        let (set, version) = try await setVersion()
        return try await manifest(of: published(version), in: set)
    }

    private func manifest(of version: SetVersionRecord, in set: SetRecord) async throws -> HTTPResponse {
        // The files of a published version never change.
        let tag = "\"\(version.publicId)\""
        if let unchanged = notModified(tag, length: .max) { return unchanged }
        var response = SpooledResponse(self)
        // All but the end of the empty list, which is the last member.
        try await response.append(Array(SetManifest(version, of: set.name).jsonBytes.dropLast(2)))
        var (count, last): (Int64, String?) = (0, "")
        repeat {
            let files = try await service.manifestFiles(of: version.id, after: last ?? "", limit: Self.manifestPage)
            var text = files.map { Wire.SetManifestFile($0) }.jsonBytes(expecting: files.count * 512)
            if count == 0 || files.isEmpty { text.removeFirst() } else { text[0] = UInt8(ascii: ",") }
            try await response.append(Array(text.dropLast()))
            count += Int64(files.count)
            last = files.count < Self.manifestPage ? nil : files.last?.path
            try await checkAdmission()
        } while last != nil
        // The version may have been removed meanwhile.
        guard count == version.files.total else { throw DomainError.notFound }
        try await response.append(Array("]}".utf8))
        return try await response.finish([("Content-Type", MediaTypes.json), ("ETag", tag)])
    }

    // MARK: Files

    /// Redirects to the file of the current version, so that a reader stays on one version.
    func currentFile() async throws -> HTTPResponse {
        let set = try await set()
        let version = try current(of: set).publicId
        let path = parameter("path").split(separator: "/", omittingEmptySubsequences: false)
            .map { PublicURLs.segment(String($0)) }.joined(separator: "/")
        let location = "/v1/sets/\(set.name)/versions/\(version)/files/\(path)"
        return HTTPResponse(status: 307, headers: [("Location", location), ("Cache-Control", "no-store")])
    }

    func versionFile() async throws -> HTTPResponse {
        let version = try published(await setVersion().1)
        let (file, source, hold) = try await service.file(parameter("path"), of: version)
        let tag = "\"\(file.digest.value)\""
        let name = file.path.split(separator: "/").last.map(String.init)
        var fields = ContentFields.fields(type: file.mimeType, filename: name, tag: tag)
        if let digest = file.digest.field { fields.append(("Repr-Digest", digest)) }
        if let response = try conditionalResponse(tag, fields) { return response }
        return try await response(of: source, length: file.length, tag, fields, holding: hold)
    }

    // MARK: Versions that readers see

    private func current(of set: SetRecord) throws(Problem) -> SetVersionRecord {
        guard let current = set.current else {
            throw Problem(.contentNotReady, "No version of set \"\(set.name)\" is published yet.")
        }
        return current
    }

    private func published(_ version: SetVersionRecord) throws(Problem) -> SetVersionRecord {
        guard version.state == .published else {
            throw Problem(
                .contentNotReady, "Version \"\(version.name)\" is not published: it is \(version.state.rawValue).")
        }
        return version
    }
}
