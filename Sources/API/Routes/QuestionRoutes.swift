import Core
import HTTPServer
import Mapping
import Service
import Wire

/// What tasks ask the app.
struct QuestionRoutes {
    let server: APIServer

    var routes: [Route] {
        [
            server.route("GET", "/v1/questions", .readOrEvents, query: ["session", "state", "limit", "cursor"]) {
                call in
                try await call.questions()
            },
            server.route("GET", "/v1/questions/{questionId}", .readOrEvents) { call in
                .json(Question(try await call.service.question(call.parameter("questionId"), app: call.app)))
            },
            server.route("POST", "/v1/questions/{questionId}/answer", .events, body: .json) { call in
                try await call.answer()
            },
        ]
    }
}

extension Call {
    fileprivate func questions() async throws -> HTTPResponse {
        let app = try app
        let state = try queryWord("state", QuestionState.Phase.allCases.map { ($0.rawValue, $0) })
        var session: SessionID?
        if let identifier = try queryIdentifier("session") {
            // A session that does not exist has no questions.
            do {
                session = try await service.session(identifier, app: app).id
            } catch DomainError.notFound {
                session = SessionID(0)
            }
        }
        return try await page(
            fetch: { cursor, limit in
                try await service.questions(of: app, session: session, state: state, after: cursor, limit: limit)
            },
            position: \.cursor, write: { Question($0.question) })
    }

    fileprivate func answer() async throws -> HTTPResponse {
        let app = try app
        let questionId = parameter("questionId")
        let wire: Wire.Answer = try read()
        let question = try await service.question(questionId, app: app)
        let answered = try await service.answer(questionId, app: app, with: Core.Answer(checking: wire, to: question))
        return .json(Question(answered))
    }

    /// A query parameter that names a session.
    func queryIdentifier(_ name: String) throws -> String? {
        guard let text = query(name) else { return nil }
        let isIdentifier =
            (1...128).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0.isLetterOrDigit || "._-~:@+".utf8.contains($0) }
        guard isIdentifier else {
            throw Problem.query(name, "An identifier has 1 to 128 characters of A-Z a-z 0-9 . _ - ~ : @ +.")
        }
        return text
    }
}

extension UInt8 {
    fileprivate var isLetterOrDigit: Bool {
        (0x30...0x39).contains(self) || (0x61...0x7A).contains(self | 0x20)
    }
}
