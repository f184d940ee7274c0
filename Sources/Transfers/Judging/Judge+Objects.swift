import Core

/// The bytes kept of a content that goes into a bucket.
extension Judge {
    /// Keeps the parts that the bucket has, if the source allows the transfer to resume after them.
    mutating func keepParts() {
        // The bytes lost from memory are counted here.
        progress.bytesInMemory = 0
        guard progress.kept.point != nil, progress.kept.parts.map({ !$0.parts.isEmpty }) ?? false, canGoOn else {
            if lengthAtHand > 0 { progress.restartCause = "notResumable" }
            progress.noteFetchedTwice(lengthAtHand)
            return progress.forgetBytes()
        }
        progress.noteFetchedTwice(lengthAtHand - (progress.kept.parts?.length ?? 0))
    }

    /// Whether the parts in the bucket remain usable after the response or its absence.
    private var canGoOn: Bool {
        switch verdict {
        case .askAgainFromZero, .alreadyComplete: false
        default: true
        }
    }
}
