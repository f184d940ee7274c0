import URLSessionClient
import Wire

/// The files of a new version: those of a list, or of a source that the service expands.
enum VersionOrder: Equatable {
    case files([SetVersionFile])
    case source(SetSource)

    /// - Throws: ``CallWords/Fault`` unless the call has exactly one source or list; ``Failure`` for a wrong line.
    init(_ words: CallWords) throws {
        let given = ["hf", "checksums", "manifest", "FILE"].filter { words.text($0) != nil }
        func fault(_ text: String) -> CallWords.Fault { CallWords.Fault(text: text, command: words.command.name) }
        guard let kind = given.first else {
            throw fault("give a FILE of URLs, --hf, --checksums or --manifest")
        }
        guard given.count == 1 else {
            throw fault("FILE, --hf, --checksums and --manifest exclude one another")
        }
        let hub = ["revision", "type", "allow", "ignore", "endpoint"]
        for (other, names) in [("hf", hub), ("checksums", ["base"])] where other != kind {
            if let name = names.first(where: { words.text($0) != nil }) { throw fault("--\(name) is for --\(other)") }
        }
        switch (kind, words.text(kind) ?? "") {
        case ("hf", let repository): self = .source(Self.hub(repository, words))
        case ("checksums", let url):
            self = .source(
                SetSource {
                    ($0.kind, $0.url, $0.base) = (.checksums, url, words.text("base"))
                })
        case ("manifest", let url): self = .source(.manifest(url))
        case (_, let file):
            let name = file == "-" ? "standard input" : file
            self = .files(try Self.files(String(decoding: LocalFiles.read(file), as: UTF8.self), of: name))
        }
    }

    static func hub(_ repository: String, _ words: CallWords) -> SetSource {
        SetSource {
            ($0.kind, $0.repository, $0.revision) = (.huggingface, repository, words.text("revision"))
            $0.type = words.text("type").map { SetSource.RepositoryType(rawValue: $0) }
            ($0.allow, $0.ignore) = (words.texts("allow"), words.texts("ignore"))
            $0.endpoint = words.text("endpoint")
        }
    }

    /// Reads lines `URL` and `URL<TAB>PATH`, or the API's JSON.
    ///
    /// - Parameter file: The name of the file, for errors.
    static func files(_ text: String, of file: String) throws(Failure) -> [SetVersionFile] {
        let lines = text.lines
        var files: [SetVersionFile] = []
        if lines.first(where: { !$0.trimmed.isEmpty })?.trimmed.hasPrefix("{") == true {
            for (index, line) in lines.enumerated() where !line.trimmed.isEmpty {
                do {
                    files.append(try SetVersionFile(parsing: Array(line.utf8)))
                } catch {
                    throw Failure("\(file), line \(index + 1): \(Problem(error).detail)", status: 2)
                }
            }
        } else {
            for source in try Source.parse(text, of: file) {
                guard let path = source.name ?? SaveLocation.lastPart(of: source.url) else {
                    throw source.failure("\(source.url) has no name: give a PATH after a tab")
                }
                files.append(SetVersionFile(path, TransferRequest(url: source.url)))
            }
        }
        guard !files.isEmpty else { throw Failure("\(file) names no file", status: 2) }
        return files
    }

    func create(_ head: SetVersionHead, in set: String, _ client: Client) async throws -> SetVersion {
        switch self {
        case .files(let files): return try await client.createVersion(head, files: files, ofSet: set)
        case .source(let source):
            var creation = SetVersionCreation(session: head.session, source: source)
            creation.version = head.version
            return try await client.createVersion(creation, ofSet: set)
        }
    }
}
