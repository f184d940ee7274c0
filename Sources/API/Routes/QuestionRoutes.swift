import Core
import HTTPServer
import Service
import Wire
import WireMapping

extension APIServer {
    var questionRoutes: [Route] {
        [
            route("GET", "/v1/questions", .readOrEvents, query: ["session", "state"] + Call.listing) {
                try await $0.listQuestions()
            },
            route("GET", "/v1/questions/{questionId}", .readOrEvents) {
                .json(Question(try await $0.service.question($0.parameter("questionId"), app: $0.app)))
            },
            route("POST", "/v1/questions/{questionId}/answer", .events, body: .json) {
                try await $0.answerQuestion()
            },
        ]
    }
}

extension Call {
    fileprivate func listQuestions() async throws -> HTTPResponse {
        let app = try app
        let states = try queryWords("state", QuestionState.Phase.allCases.map { ($0.rawValue, $0) })
        let span = try span()
        var session: SessionID?
        if let identifier = try queryText("session", .identifier) {
            // A session that does not exist has no questions.
            do {
                session = try await service.session(identifier, app: app).id
            } catch DomainError.notFound {
                session = SessionID(0)
            }
        }
        return try await page(
            fetch: { cursor, limit in
                try await service.questions(
                    of: app, session: session, states: states, span, after: cursor, limit: limit)
            },
            position: \.cursor, write: { Question($0.question) })
    }

    fileprivate func answerQuestion() async throws -> HTTPResponse {
        let app = try app
        let given = try read(Wire.Answer.self)
        let question = try await service.question(parameter("questionId"), app: app)
        let answered = try await service.answer(
            question.questionId, app: app, with: Core.Answer(checking: given, to: question))
        return .json(Question(answered))
    }
}
