import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// A download over several connections, or from several sources, while it is in flight.
struct SegmentedTransfer: Sendable {
    /// The URL, header fields and credential of a source's requests.
    struct Route: Sendable {
        var url: ParsedURL
        var headers: HTTPFields
        var credential: Credential?
        var hops = 0
    }

    /// One request for a byte range.
    struct Connection: Sendable {
        let source: Int
        let bytes: Range<Int64>
        let url: ParsedURL
        /// Whether it uses the slot of the task itself.
        let isOwn: Bool
    }

    /// The reason why no more connections begin.
    enum Ending: Sendable {
        /// The resource has changed.
        case restart(cause: String)
        case failed(ExchangeResult)
        case disk(SystemError)
    }

    /// The failure of a connection.
    struct Failure: Sendable {
        let result: ExchangeResult
        let url: ParsedURL
        /// The redirects that led to the URL.
        let hops: Int
    }

    var plan: Segmentation
    var routes: [Int: Route]
    /// The resume points of the sources whose validators are known.
    var points: [Int: ResumePoint]
    var connections: [ExchangeID: Connection] = [:]
    /// The first response with content.
    var head: ResponseHead?
    /// Whether the task's own URL has served content in this attempt, none of which proved wrong.
    var isServedByOwnURL: Bool { hasOwnContent && plan.standings.first != .dropped }
    /// Whether the task's own URL has responded with content in this attempt.
    var hasOwnContent = false
    /// The result of the last connection that ended.
    var last: ExchangeResult?
    var failure: Failure?
    var ending: Ending?
    /// How often each source was requested again because a kept connection had been closed, since it last sent bytes.
    var repeats: [Int: Int] = [:]
    var isReading = false
    /// The result of reading the content once more, in order.
    var read = Transfer.Reading(result: .success(nil), position: 0, digests: [:])
    /// Bytes received by connections that have ended.
    var bytesReceived: Int64 = 0

    /// Notes the ranges that are on disk, so that they can be stored.
    func store(in progress: inout TaskProgress) { progress.kept.keep(plan.record) }

    /// The result of the last connection, as that of one request for the whole content, which has been read once more.
    func result(ofWhole last: ExchangeResult) -> ExchangeResult {
        var result = last
        result.outcome = .complete
        result.head = head
        result.received = .file(path: "", length: plan.total)
        result.length = plan.total
        result.digests = read.digests
        result.judgement = HeadJudgement(.keep(at: 0), .append(at: 0))
        return result
    }
}

/// The sources of a download, and how its connections are shared among them.
extension Transfer {
    /// Whether the content may be fetched in segments, which are read once more in order before it is complete.
    var comesInParts: Bool {
        specification.kind == .download && request.method == "GET" && !request.sendsBody && !writesObject
            && specification.request.object == nil
            && !specification.request.headers.contains("Range")
            && specification.mayComeInSegments
    }

    /// The maximum number of concurrent connections.
    func maximumConnections(for total: Int64?) -> Int {
        guard comesInParts, !progress.avoidsSegments else { return 1 }
        let sources = specification.provesContent ? specification.mirrors.count + 1 : 1
        return max(
            1,
            min(
                specification.segments.connections(for: total),
                configuration.httpMaximumConnectionsPerHost.multipliedReportingOverflow(by: sources).partialValue))
    }

    /// The maximum number of bytes that one connection has received and whose offset is not stored yet.
    var maximumUnrecordedOfEach: Int64 {
        ServiceSettings.maximumUnrecorded / Int64(maximumConnections(for: progress.kept.point?.totalLength))
    }

    /// The URL of a source: 0 is the task's own URL, then its mirrors.
    func sourceURL(_ source: Int) -> ParsedURL? {
        if source == 0 { return taskURL }
        guard specification.mirrors.indices.contains(source - 1) else { return nil }
        return try? ParsedURL(specification.mirrors[source - 1])
    }

    /// Sources whose bytes may be combined with those of the current source.
    private var sources: Set<Int> {
        guard specification.provesContent, !progress.avoidsSegments else { return [request.source] }
        return Set((0...specification.mirrors.count).filter { sourceURL($0) != nil })
    }

    /// The route to a source before any redirect. Secrets go to the task's own origin alone.
    func route(to source: Int) -> SegmentedTransfer.Route? {
        guard let url = sourceURL(source) else { return nil }
        return SegmentedTransfer.Route(
            url: url,
            headers: Redirect.fields(
                ownHeaders, dropBody: false, dropHeaders: url.origin != taskURL.origin,
                sensitive: specification.request.sensitiveHeaders),
            credential: credential(for: url))
    }

    /// Switches to another source for the next request.
    mutating func turn(to source: Int) {
        guard let route = route(to: source) else { return }
        request.source = source
        (request.url, request.headers, request.hops) = (route.url, route.headers, 0)
        request.method = specification.request.method
    }

    /// The source to try next; nil if the attempt has tried all those whose origins are not paused.
    func nextSource(_ world: Surroundings) -> Int? {
        sourcesLeft.first { source in
            sourceURL(source).map { world.pauses.until($0.origin, app: task.app.rawValue, at: world.now) == nil }
                ?? false
        }
    }

    /// When a source that is left may be asked, if only the pauses of their origins prevent it.
    func pauseOfSources(_ world: Surroundings) -> Timestamp? {
        sourcesLeft.compactMap { source in
            sourceURL(source).flatMap { world.pauses.until($0.origin, app: task.app.rawValue, at: world.now) }
        }.min()
    }

    /// The sources that the attempt has not tried.
    var sourcesLeft: [Int] {
        (0...specification.mirrors.count).filter { !attempt.askedSources.contains($0) && sourceURL($0) != nil }
    }

    /// Whether another source is tried: the last one failed before any byte came, and the failure is not the task's.
    func mayTurn(after result: ExchangeResult) -> Bool {
        guard comesInParts, stop == nil, !progress.avoidsSegments else { return false }
        let isResumed = attempt.resuming != nil
        if isResumed, !isMirrorUseless(after: result) { return false }
        switch result.outcome {
        case .stopped: return false
        case .failed(let fault):
            switch fault {
            case .disk, .prefixMissing, .badRequest, .nameNotAsked: return false
            default: return isResumed || result.length == 0 || progress.kept.point == nil
            }
        case .complete:
            guard let status = result.head?.status, !Redirect.isRedirect(status), status != 304, status >= 400 else {
                return false
            }
            return !specification.accepts(status)
        }
    }

    /// The number of failures without progress after which the bytes of a mirror are given up.
    private static let mirrorPatience = 3

    /// Whether a mirror has no more of the content whose bytes it began: it says so, or has failed too often.
    func isMirrorUseless(after result: ExchangeResult) -> Bool {
        guard request.source > 0 else { return false }
        switch result.judgement?.verdict {
        case nil, .notADownload: break
        case .append, .restartWithThisBody: guard result.bytesReceived == 0 else { return false }
        case .askAgainFromZero, .alreadyComplete: return false
        }
        if result.outcome == .complete, let status = result.head?.status,
            !configuration.retryPolicy.retries(status: status)
        {
            return true
        }
        return progress.attempts.failuresSinceProgress >= Self.mirrorPatience
    }

    /// Gives up the bytes of a mirror for another source, whose bytes replace them.
    mutating func leaveMirror(of count: Int64, for source: Int) -> [Effect] {
        progress.noteFetchedTwice(count)
        progress.forgetBytes()
        let cause = "notResumable"
        (attempt.resuming, attempt.restartCause, progress.restartCause) = (nil, cause, cause)
        stage = .ready
        turn(to: source)
        // Stored before the first of the other bytes.
        return [.advance(), .authorize]
    }

    /// Whether the pieces that the app specified fit a content of this length.
    func hasPieces(of total: Int64) -> Bool { specification.pieces?.fits(total) ?? true }

    /// The segmentation that continues a record.
    func segmentation(_ record: SegmentRecord) -> Segmentation {
        Segmentation(
            record, sources: sources, of: specification.mirrors.count + 1,
            limit: maximumConnections(for: record.total), pieceLength: specification.pieces?.length)
    }

    /// The segments from which an interrupted task resumes; nil if it had none.
    var restoredSegments: SegmentedTransfer? {
        guard comesInParts, case .segments(let record, let point, _) = progress.kept, record.isSound,
            point.totalLength == record.total, record.count < record.total
        else { return nil }
        let plan = segmentation(record)
        return plan.isForsaken ? nil : SegmentedTransfer(plan: plan, routes: [:], points: [request.source: point])
    }
}

extension TaskSpecification {
    /// The digests to compute over the content.
    var digestsWanted: Set<DigestAlgorithm> { Set([.sha256] + (expectedDigest.map { [$0.algorithm] } ?? [])) }
}
