import Glibc
import URLSessionClient
import Wire

extension SessionTask {
    /// Whether a download has succeeded, and the service no longer has its content: it expired, or the app claimed it.
    var hasLostContent: Bool {
        kind == .download && outcome == .succeeded && content == nil && terms.destination == nil
    }
}

/// The place where the content of a download is saved.
enum SaveLocation: Sendable, Equatable {
    /// In a folder, under the server's name.
    case folder(String)
    case file(String)
    case standardOutput
    /// The content stays with the service.
    case nowhere

    /// The place that `-o` names: an existing folder or one that ends with `/`, else a file; without it the current
    /// folder.
    init(_ output: String?) {
        switch output {
        case nil: self = .folder(LocalFiles.absolute("."))
        case "-"?: self = .standardOutput
        case let path? where path.hasSuffix("/") || LocalFiles.isFolder(path):
            self = .folder(LocalFiles.absolute(path))
        case let path?: self = .file(LocalFiles.absolute(path))
        }
    }

    // MARK: In the task

    /// Keys in the metadata of tasks, with which a later call of the program finds the files.
    static let key = "urlsession.output"
    private static let savedKey = "urlsession.saved"

    /// The file in which a task's content was saved, with the task's number: a retry has the metadata of its task.
    static func saved(_ task: SessionTask) -> String? {
        let parts = task.metadata[savedKey]?.split(separator: " ", maxSplits: 1).map(String.init)
        return parts?.first == String(task.taskIdentifier) ? parts?.last : nil
    }

    /// For later calls, so that the content is not saved again.
    static func change(saying file: String, savedContentOf task: SessionTask) -> TaskChange {
        var metadata = task.metadata
        metadata[savedKey] = "\(task.taskIdentifier) \(file)"
        return TaskChange { $0.metadata = .set(metadata) }
    }

    /// The text in the task's metadata.
    var text: String? {
        switch self {
        case .folder(let path): path.hasSuffix("/") ? path : path + "/"
        case .file(let path): path
        case .standardOutput: "-"
        case .nowhere: nil
        }
    }

    init(keptWith task: SessionTask) {
        switch task.metadata[Self.key] {
        case nil: self = .nowhere
        case "-"?: self = .standardOutput
        case let path? where path.hasSuffix("/"): self = .folder(path)
        case let path?: self = .file(path)
        }
    }

    /// The same place, if it is below the current folder: a client that changes a task's metadata must not choose other
    /// files of this machine.
    ///
    /// - Throws: ``Failure`` with the way to save it elsewhere.
    func belowCurrentFolder() throws(Failure) -> SaveLocation {
        let (path, folder): (String, String)
        switch self {
        case .standardOutput, .nowhere: return self
        case .folder(let place): (path, folder) = (place, place)
        case .file(let place):
            let slash = place.lastIndex(of: "/")
            (path, folder) = (place, slash.map { String(place[...$0]) } ?? ".")
        }
        guard let here = LocalFiles.resolved("."), let there = LocalFiles.resolved(folder) else {
            throw Failure("\(folder): \(String(cString: strerror(errno)))")
        }
        let isBelow = there == here || there.hasPrefix(here == "/" ? here : here + "/")
        guard isBelow, !path.split(separator: "/").contains("..") else {
            throw Failure("the task names \(path), which is not below this folder; -o saves it there or elsewhere")
        }
        return self
    }

    // MARK: Names

    /// The file for a task's content, never outside of the folder.
    ///
    /// - Parameter taken: Files of other downloads of the same call.
    func path(for task: SessionTask, besides taken: Set<String>) -> String? {
        switch self {
        case .nowhere, .standardOutput: return nil
        case .file(let path): return path
        case .folder(let folder):
            // A server may not name a hidden file, unless the URL has that name.
            let own = Self.lastPart(of: task.originalRequest.address).flatMap { SavedName($0, isHidden: true) }
            let suggested = task.response?.suggestedFilename
            let name = suggested.flatMap { SavedName($0, isHidden: SavedName($0, isHidden: true) == own) } ?? own
            let base = folder.hasSuffix("/") ? folder : folder + "/"
            var number = 1
            while true {
                let path = base + (name ?? .download).numbered(number)
                guard taken.contains(path) else { return path }
                number += 1
            }
        }
    }

    /// The existing files with the names of a task's content, in which another call may have saved it.
    ///
    /// - Parameter taken: Files of other downloads of the same call.
    func files(for task: SessionTask, besides taken: Set<String>) -> [String] {
        var (files, taken) = ([String](), taken)
        while files.count < 100, let path = path(for: task, besides: taken), LocalFiles.exists(path) {
            files.append(path)
            guard case .folder = self else { break }
            taken.insert(path)
        }
        return files
    }

    /// The last part of a URL's path, decoded.
    static func lastPart(of url: String) -> String? {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        guard let start = path.firstRange(of: "://")?.upperBound, let slash = path[start...].firstIndex(of: "/") else {
            return nil
        }
        guard let part = path[slash...].split(separator: "/", omittingEmptySubsequences: false).last, !part.isEmpty
        else { return nil }
        return String(decoding: PercentCoding.decode(Array(part.utf8)).bytes, as: UTF8.self)
    }

    /// The host of a URL with its port, without a user.
    static func host(of url: String) -> String? {
        guard let start = url.firstRange(of: "://")?.upperBound else { return nil }
        let authority = url[start...].prefix { !"/?#".contains($0) }
        return authority.split(separator: "@").last.map { Terminal.printable(String($0)) }
    }
}
