public import Wire

/// What tasks ask the app.
extension Client {
    /// A part of the questions, from a cursor on: of one session or of all, in one state or in any.
    public func questions(
        in session: String? = nil, state: QuestionState? = nil, cursor: String? = nil, limit: Int = 100
    ) async throws -> Page<Question> {
        var query = ["limit": String(limit)]
        query["session"] = session
        query["state"] = state?.rawValue
        query["cursor"] = cursor
        return try await send("GET", ["v1", "questions"], query: query)
    }

    /// A question as it stands.
    public func question(_ questionId: String) async throws -> Question {
        try await send("GET", ["v1", "questions", questionId])
    }

    /// Answers a question; its task goes on. A second answer is refused.
    public func answer(_ answer: Answer, to questionId: String) async throws -> Question {
        try await send("POST", ["v1", "questions", questionId, "answer"], body: answer.jsonBytes)
    }
}
