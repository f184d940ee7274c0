import Formats

/// The bytes of a content that a task keeps for its next attempt.
///
/// The large values are indirect, because each claimed task has one of these, and most tasks keep nothing.
package enum Kept: Hashable, Sendable {
    case none
    /// A partial file up to the point's offset.
    ///
    /// `source` is the origin of the bytes: 0 is the task's own URL, followed by its mirrors.
    case file(ResumePoint, source: Int)
    /// Ranges of a partial file. The point has their validators, and the bytes before the first gap.
    indirect case segments(SegmentRecord, ResumePoint, source: Int)
    /// Parts in a bucket, after which the point continues; without a point the content cannot be resumed.
    indirect case parts(MultipartUpload, ResumePoint?)

    /// The bytes in a partial file.
    package init(_ point: ResumePoint?, _ segments: SegmentRecord?, source: Int) {
        switch (point, segments) {
        case (nil, _): self = .none
        case (let point?, nil): self = .file(point, source: source)
        case (let point?, let record?): self = .segments(record, point, source: source)
        }
    }

    /// The validators, and the offset from which one request could continue.
    package var point: ResumePoint? {
        switch self {
        case .none: nil
        case .file(let point, _), .segments(_, let point, _): point
        case .parts(_, let point): point
        }
    }

    package var segments: SegmentRecord? { if case .segments(let record, _, _) = self { record } else { nil } }

    package var parts: MultipartUpload? { if case .parts(let upload, _) = self { upload } else { nil } }

    package var source: Int {
        switch self {
        case .file(_, let source), .segments(_, _, let source): source
        case .none, .parts: 0
        }
    }

    /// The number of bytes that need not be fetched again; `nil` without a resume point.
    package var count: Int64? { segments?.count ?? point?.offset }

    /// Notes that the bytes before an offset are durable, in order.
    ///
    /// - Parameter digest: Their SHA-256 in lower-case hexadecimal, if it is known.
    package mutating func reach(_ offset: Int64, digest: String?) {
        guard var point else { return }
        point.reach(offset, digest: digest)
        switch self {
        case .none: break
        case .file(_, let source), .segments(_, _, let source): self = .file(point, source: source)
        case .parts(let upload, _): self = .parts(upload, point)
        }
    }

    /// Notes the URL that responds with the rest, and that of the request.
    package mutating func move(to url: String, requested: String?) {
        guard var point else { return }
        (point.url, point.requestedURL) = (url, requested)
        switch self {
        case .none: break
        case .file(_, let source): self = .file(point, source: source)
        case .segments(let record, _, let source): self = .segments(record, point, source: source)
        case .parts(let upload, _): self = .parts(upload, point)
        }
    }

    /// Notes the ranges that are durable.
    package mutating func keep(_ record: SegmentRecord) {
        guard var point else { return }
        point.reach(record.contiguous, digest: nil)
        self = .segments(record, point, source: source)
    }

    /// Forgets the ranges behind the first gap.
    package mutating func forgetRanges() { self = Kept(point, nil, source: source) }

    /// Notes the parts that are in the bucket. Those of a content that can be resumed move its point.
    package mutating func keep(_ upload: MultipartUpload) {
        var point = point
        point?.reach(upload.length, digest: nil)
        self = .parts(upload, point)
    }

    mutating func visit(_ members: inout some MemberVisitor) {
        var (point, segments, parts, source) = (point, segments, parts, source)
        members.optional("resume", &point)
        members.optional("segments", &segments)
        members.optional("multipart", &parts)
        members.sparse("source", &source, unless: 0)
        self = parts.map { .parts($0, point) } ?? Kept(point, segments, source: source)
    }
}
