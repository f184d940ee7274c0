/// The use of a response's body, decided before its first byte is written.
package enum ResumeVerdict: Hashable, Sendable {
    /// The body continues the file from this offset, which may precede the current end; 0 for a fresh download.
    case append(at: Int64)
    /// The whole resource was sent although a part was requested: truncate, adopt its validators, write from 0.
    case restartWithThisBody
    /// The body is unusable: discard it, truncate the file and repeat the request without `Range`.
    case askAgainFromZero(RestartReason)
    /// All bytes were received before; the digest check follows.
    case alreadyComplete
    /// The body is no part of the resource; the bytes on disk are kept.
    case notADownload(status: Int)

    /// The end of the bytes that a 206 announces; `nil` for any other response.
    package func end(of head: ResponseHead) -> Int64? {
        guard head.status == 206, case .append(let offset) = self,
            case .part(let first, let last, _)? = ContentRange(head.fields)
        else { return nil }
        return offset.addingSaturated(last - first).addingSaturated(1)
    }

    /// Whether the body is the content or its continuation.
    package var bringsContent: Bool {
        switch self {
        case .append, .restartWithThisBody: true
        case .askAgainFromZero, .alreadyComplete, .notADownload: false
        }
    }

    /// Whether the request is repeated from the start.
    package var asksAgain: Bool { if case .askAgainFromZero = self { true } else { false } }

    /// The reason for which bytes cannot be resumed.
    package enum RestartReason: String, Hashable, Sendable, CaseIterable {
        /// A 206 to a request without `Range`.
        case unaskedPart
        case contentRangeMissing
        case contentRangeMismatch
        case totalChanged
        case lengthMismatch
        case validatorChanged
        /// A part from another server than the one that the bytes came from.
        case otherServer
        case contentCoded
        case multipart
        case rangeNotSatisfiable
        case preconditionFailed
    }

    /// Judges a response's head.
    ///
    /// - Parameters:
    ///   - point: The source of `Range` and `If-Range`; `nil` if the request had neither.
    ///   - requestHasOwnRange: Whether the app's own request contains `Range`, so that a 206 is expected.
    ///   - isElsewhere: Whether another server responds than the one that the bytes came from: equal validators prove
    ///     nothing then.
    /// - SeeAlso: RFC 9110 sections 8.8.3, 14.4 and 15.3.7.
    package static func judge(
        head: ResponseHead, resuming point: ResumePoint?, requestHasOwnRange: Bool = false, isElsewhere: Bool = false
    ) -> ResumeVerdict {
        guard let point, point.offset > 0 else { return judgeFresh(head, requestHasOwnRange: requestHasOwnRange) }
        switch head.status {
        case 206 where isElsewhere, 416 where isElsewhere: return .askAgainFromZero(.otherServer)
        case 206: return judgePart(head, of: point)
        case 200..<300: return .restartWithThisBody
        case 412: return .askAgainFromZero(.preconditionFailed)
        case 416: return judgeUnsatisfied(head, of: point)
        default: return .notADownload(status: head.status)
        }
    }

    /// Judges the response to a request for a segment.
    ///
    /// - Parameter point: The known validators of the content; `nil` for a source without any.
    package static func judge(
        head: ResponseHead, segment: Range<Int64>, of total: Int64, _ point: ResumePoint?
    ) -> ResumeVerdict {
        var known = point ?? ResumePoint()
        known.offset = segment.lowerBound
        known.totalLength = total
        switch head.status {
        case 206:
            guard case .part(segment.lowerBound, _, _)? = ContentRange(head.fields) else {
                return .askAgainFromZero(.contentRangeMismatch)
            }
            return judgePart(head, of: known, end: segment.upperBound)
        case 200..<300: return .restartWithThisBody
        case 412: return .askAgainFromZero(.preconditionFailed)
        case 416: return .askAgainFromZero(.rangeNotSatisfiable)
        default: return .notADownload(status: head.status)
        }
    }

    private static func judgeFresh(_ head: ResponseHead, requestHasOwnRange: Bool) -> ResumeVerdict {
        guard (200..<300).contains(head.status) else { return .notADownload(status: head.status) }
        guard head.status == 206, !requestHasOwnRange else { return .append(at: 0) }
        // An unrequested part is complete only if it says so.
        guard case .part(first: 0, let last, let total?)? = ContentRange(head.fields), last == total - 1 else {
            return .askAgainFromZero(.unaskedPart)
        }
        return .append(at: 0)
    }

    /// - Parameter end: The end of the part; `nil` for the end of the content.
    private static func judgePart(
        _ head: ResponseHead, of point: ResumePoint, end: Int64? = nil
    ) -> ResumeVerdict {
        if MediaType(head.fields["Content-Type"] ?? "")?.essence == "multipart/byteranges" {
            return .askAgainFromZero(.multipart)
        }
        guard head.fields.contains("Content-Range") else { return .askAgainFromZero(.contentRangeMissing) }
        guard case .part(let first, let last, let total)? = ContentRange(head.fields), first <= point.offset else {
            return .askAgainFromZero(.contentRangeMismatch)
        }
        // `/*` is accepted only if no total was known before.
        if let known = point.totalLength, total != known { return .askAgainFromZero(.totalChanged) }
        if let end = end ?? total, last != end - 1 { return .askAgainFromZero(.contentRangeMismatch) }
        guard last >= point.offset else { return .askAgainFromZero(.contentRangeMismatch) }
        switch ContentLength.parse(head.fields) {
        case .none: break
        // Not `last - first + 1`: an origin may claim the largest number as the end of the part.
        case .length(let length) where length - 1 == last - first: break
        case .length, .invalid: return .askAgainFromZero(.lengthMismatch)
        }
        // A 206 of another version may have no validator at all.
        guard !point.differs(from: head), !point.hasValidator || point.isConfirmed(by: head) else {
            return .askAgainFromZero(.validatorChanged)
        }
        if head.hasContentCoding { return .askAgainFromZero(.contentCoded) }
        return .append(at: first)
    }

    private static func judgeUnsatisfied(_ head: ResponseHead, of point: ResumePoint) -> ResumeVerdict {
        guard case .unsatisfied(let total)? = ContentRange(head.fields), total == point.offset,
            point.totalLength ?? total == total, !point.differs(from: head)
        else { return .askAgainFromZero(.rangeNotSatisfiable) }
        // Without a known total the length alone proves nothing: a validator must match.
        guard point.totalLength != nil || point.isConfirmed(by: head) else {
            return .askAgainFromZero(.rangeNotSatisfiable)
        }
        return .alreadyComplete
    }
}

extension ResumePoint {
    /// Whether the response has a validator that is not byte-equal to the known one.
    func differs(from head: ResponseHead) -> Bool {
        for (known, name) in [(entityTag, "ETag"), (lastModified, "Last-Modified")] {
            guard let known else { continue }
            if head.fields.values(name).contains(where: { !$0.utf8.elementsEqual(known.utf8) }) { return true }
        }
        return false
    }

    var hasValidator: Bool { entityTag != nil || lastModifiedIsStrong }

    /// Whether the response repeats a strong validator.
    func isConfirmed(by head: ResponseHead) -> Bool {
        if let entityTag, let now = head.fields["ETag"] { return now.utf8.elementsEqual(entityTag.utf8) }
        guard lastModifiedIsStrong, let lastModified, let now = head.fields["Last-Modified"] else { return false }
        return now.utf8.elementsEqual(lastModified.utf8)
    }
}
