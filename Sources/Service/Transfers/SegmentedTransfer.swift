import Base
import Core
import Files
import Formats
import Store
import TransferEngine

/// A download that comes over several connections, or from several sources, while it is under way.
struct SegmentedTransfer {
    /// Where a source's requests go, and with what.
    struct Route {
        var url: ParsedURL
        var headers: HTTPFields
        var credential: Credential?
        var hops = 0
    }

    /// One request for some bytes.
    struct Connection {
        let source: Int
        let bytes: Range<Int64>
        let url: ParsedURL
        /// What of the session's cookies it was given.
        let cookies: [String]?
        /// It uses the place that the task has anyway.
        let isOwn: Bool
    }

    /// Why no more connections begin.
    enum Ending {
        /// The resource is another by now.
        case restart(cause: String)
        case failed(ExchangeResult)
        case disk(SystemError)
    }

    var plan: Segmentation
    var routes: [Int: Route]
    /// The validators of the sources that are known.
    var points: [Int: ResumePoint]
    var connections: [ExchangeID: Connection] = [:]
    /// The first answer that brought content.
    var head: ResponseHead?
    /// How the last connection ended.
    var last: ExchangeResult?
    /// How the last one ended that failed, and where it went.
    var failure: (result: ExchangeResult, source: Int)?
    var ending: Ending?
    let reader: ContentReader
    var isReading = false
    /// What connections that are over have received.
    var bytesReceived: Int64 = 0

    /// Notes what is on disk, so that it can be stored.
    func store(in progress: inout TaskProgress) {
        let record = plan.record
        progress.segments = record
        progress.resume?.reach(record.contiguous, digest: nil)
        progress.durableOffset = record.count
    }
}

extension Transfer {
    /// Notes what of its segments is on disk.
    mutating func noteSegments() {
        let segmented = segmented
        segmented?.store(in: &progress)
    }

    /// Whether its content may come in parts, which are read once more in order before it is whole.
    var comesInParts: Bool {
        specification.kind == .download && method == "GET" && !sendsBody && !writesObject
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
        Self.maximumUnrecorded / Int64(maximumConnections(for: progress.resume?.totalLength))
    }

    /// 0 is the task's own URL, then come its mirrors.
    func sourceURL(_ source: Int) -> ParsedURL? {
        if source == 0 { return taskURL }
        guard specification.mirrors.indices.contains(source - 1) else { return nil }
        return try? ParsedURL(specification.mirrors[source - 1])
    }

    /// Sources whose bytes may stand beside those of the current one.
    private var sources: Set<Int> {
        guard specification.provesContent, !progress.avoidsSegments else { return [source] }
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

    /// What a server may be sent or shown; never what another one is.
    func credential(for url: ParsedURL) -> Credential? { url.origin == credentialOrigin ? credential : nil }

    /// Goes to another source for its next request.
    mutating func turn(to source: Int) {
        guard let route = route(to: source) else { return }
        self.source = source
        (url, headers, hops) = (route.url, route.headers, 0)
        method = specification.request.method
    }

    /// The source to try next when one failed before anything came; nil where the failure is the task's.
    func nextSource(after result: ExchangeResult) -> Int? {
        guard comesInParts, stopReason == nil, !isOutdated, resuming == nil, !progress.avoidsSegments else {
            return nil
        }
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
        return (0...specification.mirrors.count).first { !triedSources.contains($0) && sourceURL($0) != nil }
    }

    // MARK: Segments

    /// What reads the content behind the connections.
    func contentReader(_ folder: DataFolder, total: Int64, checksPieces: Bool = true) -> ContentReader {
        let folder = folder.of(task.app.rawValue)
        return ContentReader(
            folder.absolute(folder.partial(task.id.rawValue)), folder.disk, total: total,
            specification.digestsWanted,
            checksPieces ? specification.pieces.map(ContentReader.Pieces.init) : nil)
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
    func restoredSegments(_ folder: DataFolder) -> SegmentedTransfer? {
        guard comesInParts, let point = progress.resume, let record = progress.segments, record.isSound,
            point.totalLength == record.total, record.count < record.total
        else { return nil }
        let plan = segmentation(record)
        guard !plan.isForsaken else { return nil }
        return SegmentedTransfer(
            plan: plan, routes: [:], points: [source: point], reader: contentReader(folder, total: record.total))
    }

    /// The engine's request for the bytes of a connection.
    func request(
        _ exchange: ExchangeID, for connection: SegmentedTransfer.Connection, by route: SegmentedTransfer.Route,
        _ segmented: SegmentedTransfer, folder: DataFolder, settings: ServiceSettings, bandwidthLimit: Int64?
    ) -> ExchangeRequest {
        var transfer = self
        transfer.exchange = exchange
        (transfer.url, transfer.headers, transfer.credential) = (route.url, route.headers, route.credential)
        transfer.cookies = connection.cookies
        transfer.resuming = nil
        var request = transfer.request(folder: folder, settings: settings, bandwidthLimit: bandwidthLimit)
        let (bytes, total) = (connection.bytes, segmented.plan.total)
        var point = segmented.points[connection.source]
        var asked = point ?? ResumePoint()
        asked.offset = bytes.lowerBound
        point?.offset = bytes.lowerBound
        for field in asked.requestFields(upTo: bytes.upperBound).fields { request.headers.set(field.name, field.value) }
        request.headers.remove("If-None-Match")
        request.sink = .stretch(
            path: folder.absolute(folder.partial(task.id.rawValue)), from: bytes.lowerBound, to: bytes.upperBound,
            sync: sync)
        request.judge = { [point] head in
            let verdict = ResumeVerdict.judge(head: head, segment: bytes, of: total, point)
            switch verdict {
            case .append(let offset): return HeadJudgement(.keep(at: offset), verdict)
            case .notADownload: return HeadJudgement(.discard(limit: Self.sideLimit), verdict)
            default: return HeadJudgement(.stop, verdict)
            }
        }
        return request
    }

    /// The exchanges that it has under way.
    var exchanges: [ExchangeID] { segmented.map { Array($0.connections.keys) } ?? [exchange] }

    /// Whether nothing of it is under way whose end would be reported.
    var waitsForConnections: Bool {
        guard let segmented, whole == nil else { return false }
        return segmented.connections.isEmpty && !segmented.isReading
    }
}

extension ContentReader.Pieces {
    init(_ pieces: PieceDigests) {
        self.init(length: pieces.length, algorithm: pieces.algorithm, values: pieces.values)
    }
}

extension TaskSpecification {
    /// What is computed of the content.
    var digestsWanted: Set<DigestAlgorithm> { Set([.sha256] + (expectedDigest.map { [$0.algorithm] } ?? [])) }
}
