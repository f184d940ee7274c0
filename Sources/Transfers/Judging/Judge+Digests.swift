import Base
import Core
import Formats
import Store
import TransferEngine

/// Checks of the content against the expected digests.
extension Judge {
    mutating func judgeContent(_ head: ResponseHead) -> Judgement {
        if let mismatch = digestMismatch(head) {
            let (content, response) = (contentSource(), TaskResponse(head, url: transfer.request.url))
            let next = restart(after: mismatch)
            return announcedMismatch(head) == nil ? leave(content, response, then: next) : next
        }
        return finish(.succeeded, content: contentSource())
    }

    mutating func restart(after mismatch: DigestMismatch) -> Judgement {
        restart(cause: "digestMismatch", fault: .digestMismatch, error: mismatch.error(at: transfer.request.url.text))
    }

    /// Judges a content that was already complete, and whose digest proved wrong when it was read.
    mutating func judge(_ mismatch: DigestMismatch) -> Settlement.Verdict {
        progress.record(metrics())
        switch restart(after: mismatch) {
        case .finish(let outcome, let result, _): return .completed(outcome, result, nil)
        default:
            progress.restartCause = "digestMismatch"
            return .retry(at: now, waitsForConnectivity: false, progress)
        }
    }

    private func digestMismatch(_ head: ResponseHead) -> DigestMismatch? {
        if let piece = transfer.attempt.wrongPiece {
            return DigestMismatch(message: "the piece at \(piece.lowerBound) has another digest")
        }
        if transfer.comesInParts, !transfer.hasPieces(of: result.length) {
            return DigestMismatch(message: "\(result.length) bytes have another number of pieces")
        }
        if let expected = specification.expectedDigest {
            let found = result.digests[expected.algorithm]?.hexadecimal
            if let found, found != expected.value {
                return DigestMismatch(message: "expected \(expected.value), found \(found)")
            }
        }
        return announcedMismatch(head)
    }

    private func announcedMismatch(_ head: ResponseHead) -> DigestMismatch? {
        guard isDownload, transfer.request.method == "GET",
            let announced = DigestField.parse(head.fields.values("Repr-Digest"))?[.sha256],
            let found = result.digests[.sha256]
        else { return nil }
        return announced == found
            ? nil
            : DigestMismatch(message: "Repr-Digest says \(announced.hexadecimal), found \(found.hexadecimal)")
    }

    /// The length of a content whose last response announced only a part of it; nil for any other.
    func length(ofWhole content: Judgement.ContentSource) -> Int64? {
        switch (content, verdict) {
        case (.existingFile(let length), _), (.object(let length, _), .alreadyComplete): length
        case (.partialFile, .append), (.bytes, .append), (.object, .append): announcedTotal
        case (.partialFile, _): transfer.segmented?.plan.total
        default: nil
        }
    }

    func contentSource() -> Judgement.ContentSource {
        let digest = result.digests[.sha256] ?? []
        switch result.received {
        case .memory(let bytes): return .bytes(bytes, digest: digest)
        case .file(_, let length): return .partialFile(length: length, digest: digest)
        case .parts(let length): return .object(length: length, digest: digest)
        case .none where transfer.writesObject && verdict == .alreadyComplete:
            return .object(length: transfer.attempt.resuming?.offset ?? 0, digest: digest)
        case .none: return .bytes([], digest: Digest.of([]))
        }
    }
}
