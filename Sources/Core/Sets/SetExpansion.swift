package import Formats

/// The reason why a source cannot be expanded.
package struct SetExpansionError: Error, Hashable, Sendable {
    /// Sentences for people.
    package let detail: String

    init(_ detail: String) { self.detail = detail }
}

/// The expansion of a source into the files of a version, as it is stored between two documents of the source.
///
/// Documents are untrusted: from any bytes, the time is linear in their length, and the next document has the origin of
/// the source.
package struct SetExpansion: Shape {
    /// The maximum number of files.
    package static let mostFiles: Int64 = 100_000
    /// The maximum number of documents. An origin could otherwise continue a list for ever.
    package static let mostDocuments: Int64 = 2000

    /// The URL of the next document; `nil` if the list is complete.
    package private(set) var next: String?
    /// The commit of a Hugging Face source, once it is known.
    package private(set) var commit: String?
    private var documents: Int64 = 0
    private var files: Int64 = 0

    package init() {}

    /// An expansion that begins.
    package init(of source: SetSource) {
        switch source.kind {
        case .huggingface: next = HubRepository(source)?.revisionURL
        case .checksums, .manifest: next = source.url
        }
    }

    package var isComplete: Bool { next == nil }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("next", &next)
        members.optional("commit", &commit)
        members.member("documents", &documents)
        members.member("files", &files)
    }

    /// Reads the document at ``next``, after which ``next`` is the following one. The paths of the files satisfy
    /// ``TextRule/setPath``, and may collide.
    ///
    /// - Parameters:
    ///   - headers: The fields of the response.
    ///   - url: The URL of the response, after redirects.
    /// - Returns: The files of the document, always in the same order.
    /// - Throws: ``SetExpansionError``, after which this value is as it was.
    package mutating func take(
        _ document: [UInt8], _ headers: HTTPFields, from url: String, for source: SetSource
    ) throws(SetExpansionError) -> [SetFile] {
        var after = self
        after.next = nil
        let found: [SetFile]
        switch source.kind {
        case .huggingface:
            guard let hub = HubRepository(source) else { throw SetExpansionError("The source has no usable URL.") }
            if let commit {
                found = try hub.files(in: document, at: commit)
                after.next = try hub.nextPage(headers, from: url)
            } else {
                let commit = try hub.commit(in: document)
                (after.commit, after.next, found) = (commit, hub.treeURL(of: commit), [])
            }
        case .checksums: found = try ChecksumList.files(in: document, of: source)
        case .manifest: found = try ManifestList.files(in: document)
        }
        after.documents += 1
        after.files += Int64(found.count)
        guard after.files <= Self.mostFiles else { throw .tooManyFiles }
        guard after.documents <= Self.mostDocuments else {
            throw SetExpansionError("The list has more than \(Self.mostDocuments) pages.")
        }
        self = after
        return found
    }
}

extension SetExpansionError {
    static var tooManyFiles: SetExpansionError {
        SetExpansionError("A version has at most \(SetExpansion.mostFiles) files.")
    }
}

// MARK: - Values of untrusted documents

extension SetFile {
    /// A file that a document lists.
    ///
    /// - Parameter place: The place in the document, for messages: `Line 1`.
    init(
        listing path: String, at url: String, _ digest: SetDigest?, length: Int64?, as place: String
    ) throws(SetExpansionError) {
        if let fault = TextRule.setPath.violation(in: path) ?? TextRule.url.violation(in: url) {
            throw SetExpansionError("\(place): \(fault)")
        }
        self.init(path, TransferRequest(url: url, method: "GET"), digest, length: length)
    }
}

extension SetDigest {
    /// A digest from hexadecimal digits of either case; `nil` if they are none, or not as many as the algorithm has.
    init?(_ algorithm: SetDigestAlgorithm, hexadecimal text: String) {
        guard text.utf8.count == 2 * algorithm.length, text.isHexadecimal else { return nil }
        self.init(algorithm, text.asciiLowercased)
    }
}

extension SetDigestAlgorithm {
    /// The length of a digest in bytes.
    var length: Int {
        switch self {
        case .sha256: 32
        case .sha512: 64
        case .md5: 16
        case .gitBlobSHA1: 20
        }
    }
}

extension String {
    var isHexadecimal: Bool { utf8.allSatisfy { $0.hexadecimalValue != nil } }
}

extension JSON {
    /// Reads a document of a source.
    init(source bytes: [UInt8]) throws(SetExpansionError) {
        do throws(JSONError) { self = try JSON.parse(bytes) } catch {
            switch error {
            case .malformed(let offset, let detail):
                throw SetExpansionError("The list is no JSON at byte \(offset): \(detail).")
            case .invalid(let faults):
                throw SetExpansionError(faults.first.map { "\($0.pointer): \($0.detail)" } ?? "The list is no JSON.")
            }
        }
    }
}
