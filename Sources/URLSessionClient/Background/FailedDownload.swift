import Foundation

/// The resume data of a failed download: which task failed. The service repeats it, with the bytes that it kept.
///
/// The resume data of a cancelled download are the service's own text.
struct FailedDownload: Sendable, Hashable {
    let session: String
    let incarnation: Int64
    let number: Int64

    private static let mark = "urlsessiond-failed-download"

    init(session: String, incarnation: Int64, number: Int64) {
        (self.session, self.incarnation, self.number) = (session, incarnation, number)
    }

    /// - Returns: `nil` for other data.
    init?(_ data: Data) {
        let words = String(decoding: data, as: UTF8.self)
            .split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
        guard words.count == 4, words[0] == Self.mark, let incarnation = Int64(words[1]), let number = Int64(words[2])
        else { return nil }
        self.init(session: String(words[3]), incarnation: incarnation, number: number)
    }

    /// The identifier is last: it may contain spaces.
    var data: Data { Data("\(Self.mark) \(incarnation) \(number) \(session)".utf8) }
}
