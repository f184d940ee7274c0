import Core

/// The verdict on content in segments that concerns more than one request.
extension Judge {
    /// A redirect that no connection of the segments has followed. Following it now would begin them again without a
    /// limit, so that the sources are requested again in another attempt.
    mutating func judgeUnfollowed(_ head: ResponseHead) -> Judgement {
        transfer.segmented?.store(in: &progress)
        let error = statusError(head)
        switch decide(ending: .transport, keptOffset: progress.keptOffset, error) {
        case .retry(let at): return .retry(at: at)
        case .giveUp: return finish(.failed, error: error, isCounted: true)
        }
    }
}
