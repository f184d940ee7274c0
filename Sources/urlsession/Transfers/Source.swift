import Wire

/// A URL that `get` downloads, with the file that a line of `--input-file` names for the content.
struct Source: Sendable, Hashable {
    let url: String
    /// A path below the folder of `-o`; `nil` for the server's name.
    var name: String?
    /// `urls.txt, line 3`; `nil` for an argument of the command.
    var line: String?

    /// Reads lines `URL` and `URL<TAB>NAME`; empty lines and lines that begin with `#` are skipped.
    ///
    /// - Parameter file: The name of the file, for errors.
    static func parse(_ text: String, of file: String) throws(Failure) -> [Source] {
        var sources: [Source] = []
        for (index, line) in text.lines.enumerated() {
            if line.trimmed.isEmpty || line.trimmed.hasPrefix("#") { continue }
            let parts = line.split(separator: "\t", maxSplits: 1, omittingEmptySubsequences: false).map(\.trimmed)
            var source = Source(url: parts[0], line: "\(file), line \(index + 1)")
            if parts.count == 2 {
                if let fault = fault(inName: parts[1]) { throw source.failure(fault) }
                source.name = parts[1]
            }
            if parts[0].isEmpty { throw source.failure("the URL is missing") }
            sources.append(source)
        }
        return sources
    }

    /// The reason why a name is not the path of a file below a folder; `nil` if it is.
    private static func fault(inName name: String) -> String? {
        if name.isEmpty { return "the name after the tab is empty" }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        if name.hasPrefix("/") { return "\(name) must be a relative path, below the folder of -o" }
        if parts.contains("..") { return "\(name) must not lead out of the folder with .." }
        if parts.last == "" || parts.last == "." { return "\(name) names a folder, not a file" }
        return nil
    }

    func failure(_ text: String) -> Failure { Failure(line.map { "\($0): \(text)" } ?? text, status: 2) }

    /// The place of the content: the file of the line, if it names one.
    func place(in place: SaveLocation) -> SaveLocation {
        guard let name, case .folder(let folder) = place else { return place }
        return .file((folder.hasSuffix("/") ? folder : folder + "/") + name)
    }
}
