/// The bytes of an unfinished download that can be read.
package struct ArrivingContent: Hashable, Sendable {
    /// Identifies these bytes among all that the task has begun to receive from offset 0.
    package let version: Int64
    /// The length of the whole content, if the origin announced it.
    package let total: Int64?
    /// Durable ranges, in ascending order.
    private let ranges: [Range<Int64>]
    /// The objects that have the bytes; none if a file has them.
    package let objects: [StoredObject]

    package init(version: Int64, total: Int64?, _ ranges: [Range<Int64>] = [], in objects: [StoredObject] = []) {
        self.version = version
        self.total = total
        self.ranges = ranges.filter { !$0.isEmpty }
        self.objects = objects
    }

    /// The bytes of a stored progress; `nil` if neither a file nor objects have them.
    package init?(_ progress: TaskProgress) {
        switch progress.kept {
        case .none: return nil
        case .parts(let upload, let point):
            let objects = upload.objects
            guard let length = objects.isEmpty ? nil : objects.reduce(0, { $0 + $1.length }) else { return nil }
            self.init(
                version: progress.version, total: point?.totalLength ?? upload.expected, [0..<length], in: objects)
        case .file(let point, _):
            self.init(version: progress.version, total: point.totalLength, [0..<point.offset])
        case .segments(let record, _, _):
            // A range that has a source belongs to a piece that is not verified yet.
            let verified = record.held.filter { $0.source == nil }.map { $0.offset..<$0.end }
            self.init(version: progress.version, total: record.total, verified)
        }
    }

    /// The end of the readable bytes from an offset on; `nil` if the byte at the offset is not readable yet.
    ///
    /// The last byte of a content that is durable as a whole is withheld: the task may still fail, by its digest for
    /// instance. A reader that gets it knows that the task has succeeded.
    package func end(from offset: Int64) -> Int64? {
        let end = ranges.reduce(offset) { $1.contains($0) ? $1.upperBound : $0 }
        let readable = end == total && contiguous == total ? end - 1 : end
        return readable > offset ? readable : nil
    }

    /// The length of the durable prefix.
    private var contiguous: Int64 { ranges.reduce(0) { $1.contains($0) ? $1.upperBound : $0 } }
}

/// The response to a request for a content that is arriving (RFC 9110 section 14, RFC 8673).
package enum ArrivingAnswer: Hashable, Sendable {
    /// The response has to wait for the byte at an offset, or, with `nil`, for the whole content.
    case wait(for: Int64?)
    case send(Selection)
    /// 416.
    case unsatisfiable(total: Int64)

    /// The bytes of a response.
    package struct Selection: Hashable, Sendable {
        package let first: Int64
        /// `nil` for the end of a content of unknown length.
        package let end: Int64?
        /// The value of `Content-Range` in a 206; `nil` for a 200.
        package let contentRange: String?
    }

    /// The last position with which a client requests all bytes to the end of a content of unknown length (RFC 8673
    /// section 2.2).
    private static let veryLarge: Int64 = 9_007_199_254_740_991

    /// - Parameters:
    ///   - content: `nil` if no byte can be read before the task is completed.
    ///   - range: The `Range` value, or `nil`.
    ///   - ifRange: The `If-Range` value, or `nil`.
    ///   - entityTag: The strong tag of the content's version, with quotes.
    package static func decide(
        _ content: ArrivingContent?, range: String?, ifRange: String? = nil, entityTag: String? = nil
    ) -> ArrivingAnswer {
        guard let content else { return .wait(for: nil) }
        let answer: ArrivingAnswer =
            if let total = content.total {
                ofKnownLength(
                    total, ByteRange.select(range: range, ifRange: ifRange, entityTag: entityTag, length: total))
            } else {
                ofUnknownLength(
                    content, ByteRange.applies(ifRange, to: entityTag) ? RequestedRange(range) : .whole)
            }
        guard case .send(let selection) = answer, content.end(from: selection.first) == nil else { return answer }
        return .wait(for: selection.first)
    }

    private static func ofKnownLength(_ total: Int64, _ range: ByteRange) -> ArrivingAnswer {
        switch range {
        case .whole: .send(Selection(first: 0, end: total, contentRange: nil))
        case .part(let first, let last): part(first, last, "\(total)", end: last + 1)
        case .unsatisfiable: .unsatisfiable(total: total)
        }
    }

    private static func ofUnknownLength(_ content: ArrivingContent, _ range: RequestedRange) -> ArrivingAnswer {
        switch range {
        case .whole: .send(Selection(first: 0, end: nil, contentRange: nil))
        // The last bytes are known only at the end of the content.
        case .suffix: .wait(for: nil)
        case .bytes(let first, let last?): part(first, last, "*", end: last < veryLarge ? last + 1 : nil)
        // Only the existing bytes: a later byte cannot be promised.
        case .bytes(let first, nil):
            content.end(from: first).map { part(first, $0 - 1, "*", end: $0) } ?? .wait(for: first)
        }
    }

    private static func part(_ first: Int64, _ last: Int64, _ total: String, end: Int64?) -> ArrivingAnswer {
        .send(Selection(first: first, end: end, contentRange: "bytes \(first)-\(last)/\(total)"))
    }
}
