import Foundation
import Glibc
import URLSessionClient
import Wire

/// The error of a command in lines for people, and the exit status.
struct Failure: Error {
    let lines: [String]
    let status: Int32

    init(_ lines: String..., status: Int32 = 1) {
        self.lines = lines
        self.status = status
    }

    /// Ends with a status and without a message.
    static func silent(_ status: Int32) -> Failure { Failure(lines: [], status: status) }

    private init(lines: [String], status: Int32) {
        self.lines = lines
        self.status = status
    }

    /// - Parameters:
    ///   - url: The URL of the service.
    ///   - words: The words of the call.
    init(of error: any Error, at url: String?, _ words: CallWords? = nil) {
        switch error {
        case let failure as Failure: self = failure
        // An existing task may have no content; the service reports which.
        case let problem as Problem
        where problem.code == .notFound && words?.given.isEmpty == false && words?.command.name != "content":
            let named = words?.given ?? []
            let kinds = named.map { $0.name.lowercased() }.joined(separator: " or ")
            let names = named.compactMap { words?.text($0.name) }.joined(separator: " ")
            self.init(lines: ["there is no such \(kinds): \(names)"], status: 1)
        case let problem as Problem: self.init(problem)
        case let error as ClientError: self.init(lines: [Self.words(error)], status: 1)
        case is CancellationError: self = .silent(2)
        case let error as URLError where error.code == .cancelled: self = .silent(2)
        case is URLError: self.init(lines: [Self.words(error as? URLError, url ?? "the service")], status: 1)
        default: self.init(lines: ["\(error)"], status: 1)
        }
    }

    private init(_ problem: Problem) {
        let isAuthentication = problem.status == 401 || problem.status == 403
        var lines = [Words.sentence(problem.detail.isEmpty ? problem.title : problem.detail)]
        lines += problem.errors.count > 1 ? problem.errors.map { "\($0.place): \($0.detail)" } : []
        if problem.status == 401 { lines.append("give the key as URLSESSION_KEY, or in \(Settings.path)") }
        self.init(lines: lines, status: isAuthentication ? 4 : 1)
    }

    private static func words(_ error: ClientError) -> String {
        switch error {
        case .badURL(let text): "\(text) is not the URL of a service"
        case .status(let status):
            "the service answered \(Words.status(Int64(status))) without a problem; is it urlsessiond?"
        case .unreadableAnswer(let detail): "the service's answer cannot be read: \(detail)"
        case .streamEnded: "the service ended its answer early"
        case .noContent: "the task has no content"
        case .contentChanged: "the content changed while it was read"
        case .file(let path, EEXIST): "\(path) exists"
        case .file(let path, let code): "\(path): \(String(cString: strerror(code)))"
        case .fileShrank(let path): "\(path) became shorter while it was sent"
        }
    }

    private static func words(_ error: URLError?, _ url: String) -> String {
        switch error?.code {
        case .cannotConnectToHost?: "\(url) does not answer; is urlsessiond running there?"
        case .cannotFindHost?: "\(url): there is no such host"
        case .timedOut?: "\(url) took too long to answer"
        case .networkConnectionLost?: "\(url) ended the connection"
        case .secureConnectionFailed?, .serverCertificateUntrusted?, .serverCertificateHasUnknownRoot?,
            .serverCertificateHasBadDate?:
            "\(url) has no certificate that can be trusted"
        // On Linux the code is that of an unknown error.
        case .unknown? where error?.localizedDescription.contains("certificate") == true:
            "\(url) has no certificate that can be trusted; --ca-file names the file of its CA"
        default: "\(url) cannot be reached (error \(error?.code.rawValue ?? 0))"
        }
    }
}
