import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// A download that comes over several connections, or from several sources, while it is under way.
struct SegmentedTransfer: Sendable {
    /// Where a source's requests go, and with what.
    struct Route: Sendable {
        var url: ParsedURL
        var headers: HTTPFields
        var credential: Credential?
        var hops = 0
    }

    /// One request for some bytes.
    struct Connection: Sendable {
        let source: Int
        let bytes: Range<Int64>
        let url: ParsedURL
        /// It uses the place that the task has anyway.
        let isOwn: Bool
    }

    /// Why no more connections begin.
    enum Ending: Sendable {
        /// The resource is another by now.
        case restart(cause: String)
        case failed(ExchangeResult)
        case disk(SystemError)
    }

    /// The end of a connection that failed.
    struct Failure: Sendable {
        let result: ExchangeResult
        let source: Int
    }

    var plan: Segmentation
    var routes: [Int: Route]
    /// The validators of the sources that are known.
    var points: [Int: ResumePoint]
    var connections: [ExchangeID: Connection] = [:]
    /// The first answer that brought content.
    var head: ResponseHead?
    /// The end of the last connection.
    var last: ExchangeResult?
    var failure: Failure?
    var ending: Ending?
    var isReading = false
    /// What was read of the content, in order.
    var read = Transfer.Reading(result: .success(nil), position: 0, digests: [:])
    /// Bytes that connections have received which are over.
    var bytesReceived: Int64 = 0

    /// Notes what is on disk, so that it can be stored.
    func store(in progress: inout TaskProgress) {
        let record = plan.record
        progress.segments = record
        progress.resume?.reach(record.contiguous, digest: nil)
        progress.durableOffset = record.count
    }

    /// The end of the last connection as that of one request for the whole, which has been read.
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

/// Which sources a download has, and how its connections are shared among them.
extension Transfer {
    /// Whether its content may come in parts, which are read once more in order before it is whole.
    var comesInParts: Bool {
        specification.kind == .download && request.method == "GET" && !request.sendsBody && !writesObject
            && specification.request.object == nil
            && !specification.request.headers.contains("Range")
            && specification.mayComeInSegments
    }

    /// Connections that it may have at a time.
    func maximumConnections(for total: Int64?) -> Int {
        guard comesInParts, !progress.avoidsSegments else { return 1 }
        let sources = specification.provesContent ? specification.mirrors.count + 1 : 1
        return max(
            1,
            min(
                specification.segments.connections(for: total),
                configuration.httpMaximumConnectionsPerHost.multipliedReportingOverflow(by: sources).partialValue))
    }

    /// Bytes of one connection that came and whose offset is not stored yet, at most.
    var maximumUnrecordedOfEach: Int64 {
        ServiceSettings.maximumUnrecorded / Int64(maximumConnections(for: progress.resume?.totalLength))
    }

    /// 0 is the task's own URL, then come its mirrors.
    func sourceURL(_ source: Int) -> ParsedURL? {
        if source == 0 { return taskURL }
        guard specification.mirrors.indices.contains(source - 1) else { return nil }
        return try? ParsedURL(specification.mirrors[source - 1])
    }

    /// Sources whose bytes may stand beside those of the current one.
    private var sources: Set<Int> {
        guard specification.provesContent, !progress.avoidsSegments else { return [request.source] }
        return Set((0...specification.mirrors.count).filter { sourceURL($0) != nil })
    }

    /// How a source is asked, before anybody redirects; secrets go to the task's own origin alone.
    func route(to source: Int) -> SegmentedTransfer.Route? {
        guard let url = sourceURL(source) else { return nil }
        return SegmentedTransfer.Route(
            url: url,
            headers: Redirect.fields(
                ownHeaders, dropBody: false, dropHeaders: url.origin != taskURL.origin,
                sensitive: specification.request.sensitiveHeaders),
            credential: credential(for: url))
    }

    /// Goes to another source for its next request.
    mutating func turn(to source: Int) {
        guard let route = route(to: source) else { return }
        request.source = source
        (request.url, request.headers, request.hops) = (route.url, route.headers, 0)
        request.method = specification.request.method
    }

    /// The source to try next when one failed before anything came; nil where the failure is the task's.
    func nextSource(after result: ExchangeResult) -> Int? {
        guard comesInParts, stop == nil, attempt.resuming == nil, !progress.avoidsSegments else { return nil }
        switch result.outcome {
        case .stopped: return nil
        case .failed(let fault):
            switch fault {
            case .disk, .prefixMissing, .badRequest, .nameNotAsked: return nil
            case _ where result.length > 0 && progress.resume != nil: return nil
            default: break
            }
        case .complete:
            guard let status = result.head?.status, !Redirect.isRedirect(status), status != 304, status >= 400,
                !specification.acceptableStatusCodes.contains(where: { $0.contains(status) })
            else { return nil }
        }
        return (0...specification.mirrors.count).first { !attempt.askedSources.contains($0) && sourceURL($0) != nil }
    }

    /// Whether the pieces that the app knows are those of a content of this length.
    func hasPieces(of total: Int64) -> Bool { specification.pieces?.fits(total) ?? true }

    /// A machine for what is on disk.
    func segmentation(_ record: SegmentRecord) -> Segmentation {
        Segmentation(
            record, sources: sources, of: specification.mirrors.count + 1,
            limit: maximumConnections(for: record.total), pieceLength: specification.pieces?.length)
    }

    /// What a task that was interrupted goes on with; nil where it did not come in segments.
    var restoredSegments: SegmentedTransfer? {
        guard comesInParts, let point = progress.resume, let record = progress.segments, record.isSound,
            point.totalLength == record.total, record.count < record.total
        else { return nil }
        let plan = segmentation(record)
        return plan.isForsaken ? nil : SegmentedTransfer(plan: plan, routes: [:], points: [request.source: point])
    }
}

extension TaskSpecification {
    /// What is computed of the content.
    var digestsWanted: Set<DigestAlgorithm> { Set([.sha256] + (expectedDigest.map { [$0.algorithm] } ?? [])) }
}
