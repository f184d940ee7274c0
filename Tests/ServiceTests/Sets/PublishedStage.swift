import Base
import Buckets
import Core
import Files
import Formats
import Glibc
import TestSupport

@testable import Service

/// Contents in a data folder and a root beside it, on which versions of sets are published.
final class PublishedStage: Sendable {
    let data: TemporaryFolder
    let folder = TemporaryFolder()
    let sources: PublishedSources

    /// - Parameter data: The data folder.
    init(contents: BucketClient? = nil, data: TemporaryFolder = TemporaryFolder()) throws {
        self.data = data
        data.makeFolder("contents/00")
        sources = PublishedSources(
            folder: DataFolder(path: data.path, disk: try DiskQueue(threads: 2)), contents: contents)
    }

    var root: String { folder.path }

    func set(_ layout: SetFolder.Layout = .versions, path: String = "a/b") -> SetFolder {
        SetFolder(root: root, path: path, layout: layout, sources: sources)
    }

    /// A file whose bytes are in memory.
    func file(_ path: String, _ bytes: [UInt8]) -> PublishedFile {
        let digest = Digest.of(bytes).hexadecimal
        return PublishedFile(
            path: path, length: Int64(bytes.count), digest: ContentDigest(algorithm: .sha256, value: digest),
            blobName: digest, storage: .bytes(bytes))
    }

    func file(_ path: String, _ text: String) -> PublishedFile { file(path, Array(text.utf8)) }

    /// A file whose bytes are in the data folder, under a name.
    func stored(_ path: String, _ bytes: [UInt8], as name: String) -> PublishedFile {
        let place = "contents/00/\(name)"
        data.write(bytes, to: place)
        var file = file(path, bytes)
        file.storage = .file(place)
        return file
    }

    /// What is below the root, with the texts of symbolic links.
    var tree: [String] {
        filesBelow(root).map { path in
            var text = [CChar](repeating: 0, count: 1024)
            let count = readlink("\(root)/\(path)", &text, text.count)
            let target = text.prefix(max(0, count)).map { UInt8(bitPattern: $0) }
            return count < 0 ? path : "\(path) -> \(String(decoding: target, as: UTF8.self))"
        }
    }

    func text(_ path: String) -> String? {
        readFile("\(root)/\(path)").map { String(decoding: $0, as: UTF8.self) }
    }
}

/// Places, seals and points in one go.
extension SetFolder {
    func publish(_ files: [PublishedFile], as version: String) async throws {
        try await place(files, of: version)
        try await seal(version, files: Int64(files.count))
        try await point(to: version)
    }
}
