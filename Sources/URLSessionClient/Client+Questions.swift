public import Wire

/// The questions of tasks.
extension Client {
    /// A page of the questions of one session or of all, in any of the given states.
    public func questions(
        in session: String? = nil, states: [QuestionState] = [], cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<Question> {
        try await page(
            ["v1", "questions"], cursor, limit, ["session": session, "state": Self.list(states.map(\.rawValue))])
    }

    /// One question.
    public func question(_ questionId: String) async throws -> Question {
        try await send("GET", ["v1", "questions", questionId])
    }

    /// Answers a question; its task resumes. A second answer is refused.
    public func answer(_ answer: Answer, to questionId: String) async throws -> Question {
        try await send("POST", ["v1", "questions", questionId, "answer"], body: answer.jsonBytes)
    }
}
