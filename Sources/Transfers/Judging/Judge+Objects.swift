import Core

/// What is kept of a content that goes into a bucket.
extension Judge {
    /// Keeps the parts that the bucket has, where the source can be gone on with behind them.
    mutating func keepParts() {
        // What is lost of it is counted here.
        progress.bytesInMemory = 0
        guard progress.resume != nil, progress.multipart.map({ !$0.parts.isEmpty }) ?? false, canGoOn else {
            if lengthAtHand > 0 { progress.restartCause = "notResumable" }
            progress.noteFetchedTwice(lengthAtHand)
            return progress.forgetBytes()
        }
        progress.noteFetchedTwice(lengthAtHand - (progress.multipart?.length ?? 0))
    }

    /// Whether the answer, or the lack of one, leaves what the bucket has of use.
    private var canGoOn: Bool {
        switch verdict {
        case .askAgainFromZero, .alreadyComplete: false
        default: true
        }
    }
}
