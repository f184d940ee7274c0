import Core

/// What is told of content in segments beyond the end of one request.
extension Judge {
    /// Judges that what came in segments is of no use, because the resource is another by now.
    mutating func judgeChange(cause: String) -> Judgement {
        restart(cause: cause, fault: .restart, error: TaskError(.badServerResponse))
    }

    /// Judges that no source is left that sends what the app expects.
    mutating func judgeLies() -> Judgement {
        restart(after: DigestMismatch(message: "no source has all pieces with the digests that are expected"))
    }
}
