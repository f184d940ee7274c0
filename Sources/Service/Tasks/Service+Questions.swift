import Base
package import Core
import Store
import TransferEngine
import Transfers

/// Questions to apps, and their answers.
extension Service {
    package func question(_ questionId: String, app: AppID) async throws -> QuestionRecord {
        try await store.questions.read(questionId, app: app)
    }

    package func questions(
        of app: AppID, session: SessionID?, states: Set<QuestionState.Phase>, _ span: ListSpan, after cursor: Int64,
        limit: Int
    ) async throws -> [(cursor: Int64, question: QuestionRecord)] {
        try await store.questions.list(of: app, session: session, states: states, span, after: cursor, limit: limit)
    }

    /// Answers a question. A credential that is to be stored is stored for its protection space.
    package func answer(_ questionId: String, app: AppID, with answer: Answer) async throws -> QuestionRecord {
        var answer = answer
        let question = try await store.questions.read(questionId, app: app)
        if question.question.protectionSpace?.authenticationMethod == .digest { answer.credential?.usesDigest = true }
        let origin = try answer.request.map { try ParsedURL($0.url).origin }
        let (record, aftermath) = try await store.questions.answer(
            questionId, app: app, with: answer, origin: origin, credentialId: Identifier.make(prefix: "cred_"),
            at: clock.now)
        if answer.credential != nil { inbox.tell(.appChanged(app)) }
        outlet.handle(aftermath)
        hub.tasks.signal(record.task)
        return record
    }
}
