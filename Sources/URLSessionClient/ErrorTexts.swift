public import Foundation
public import Wire

extension Problem: LocalizedError {
    /// What was wrong, and what to do.
    public var errorDescription: String? { detail }
    /// The kind of the problem.
    public var failureReason: String? { title }
}

extension ClientError: LocalizedError {
    /// What went wrong, for a person.
    public var errorDescription: String? {
        switch self {
        case .badURL(let text): "No URL can be made of \(text)."
        case .status(let status): "The service answered \(status) and did not say why."
        case .unreadableAnswer(let text): "The service's answer cannot be read: \(text)"
        case .streamEnded: "The stream of events ended."
        case .noContent: "The task has no content: none was received, or it was claimed, or it expired."
        case .contentChanged: "The content is not the one that was begun."
        case .file(let path, let code): "\(path): \(String(cString: strerror(code)))"
        case .fileShrank(let path): "\(path) became shorter while it was sent."
        }
    }
}

#if canImport(FoundationNetworking)
    /// The key of the resume data in the `userInfo` of a failed download's error, as Apple's Foundation has it.
    public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
#endif
