public import Foundation
public import Wire

extension Problem: LocalizedError {
    /// The fault and its remedy.
    public var errorDescription: String? { text }

    /// The detail without its initial pointer, which refers to the JSON that this library has sent.
    var text: String {
        guard let pointer = errors.first?.pointer, !pointer.isEmpty, detail.hasPrefix("\(pointer): ") else {
            return detail
        }
        return String(detail.dropFirst(pointer.count + 2))
    }
    /// The kind of the problem.
    public var failureReason: String? { title }
}

extension ClientError: LocalizedError {
    /// A description for people.
    public var errorDescription: String? {
        switch self {
        case .badURL(let text): "\"\(text)\" is not the URL of a service: it must begin with http:// or https://."
        case .status(let status): "The service answered \(status) without a reason."
        case .unreadableAnswer(let text):
            "The response is not from urlsessiond, which may listen at another port or without /v1: \(text)"
        case .streamEnded: "The stream of events ended."
        case .noContent: "The task has no content: none was received, or it was claimed, or it expired."
        case .contentChanged: "The content changed while it was read."
        case .file(let path, let code): "\(path): \(String(cString: strerror(code)))"
        case .fileShrank(let path): "\(path) became shorter while it was sent."
        }
    }
}

extension WebhookError: LocalizedError {
    /// A description for people.
    public var errorDescription: String? {
        switch self {
        case .unusableSecret: "A webhook secret is whsec_ followed by base64, as the service returned it."
        case .incompleteHeaders: "A header field of the webhook's signature is missing or wrong."
        case .wrongTime: "The webhook was signed too long ago, or in the future."
        case .wrongSignature: "The webhook was not signed with one of the secrets."
        case .unreadable: "The webhook is signed, but its body is not that of a webhook."
        }
    }
}

#if canImport(FoundationNetworking)
    /// The key of the resume data in the `userInfo` of a failed download's error, as Apple's Foundation has it.
    public let NSURLSessionDownloadTaskResumeData = "NSURLSessionDownloadTaskResumeData"
#endif
