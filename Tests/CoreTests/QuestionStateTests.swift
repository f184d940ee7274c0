import Testing

@testable import Core

@Suite struct QuestionStateTests {
    static let deadline = Timestamp.after(10)
    static let answer = QuestionState.Event.answer(.useCredential)
    static let answered = QuestionState.answered(.useCredential, at: now)

    @Test(
        arguments: [
            (.open, answer, 9.9, .answered(.useCredential, at: .after(9.9)), [.release]),
            (.open, .deadlinePassed, 10, .expired, [.failTask, .release]),
            (.open, .taskEnded, 1, .expired, []),
            (answered, .taskEnded, 1, answered, []),
            (.expired, .taskEnded, 1, .expired, []),
        ] as [(QuestionState, QuestionState.Event, Double, QuestionState, [QuestionState.Effect])])
    func `The machine follows each arrow of the diagram`(
        _ from: QuestionState, _ event: QuestionState.Event, _ second: Double, _ to: QuestionState,
        _ effects: [QuestionState.Effect]
    ) throws {
        var state = from
        #expect(try state.handle(event, deadline: Self.deadline, at: .after(second)) == effects)
        #expect(state == to)
    }

    @Test(
        arguments: [
            (.open, answer, 10), (.open, .deadlinePassed, 9.9), (answered, answer, 1), (answered, .deadlinePassed, 20),
            (.expired, answer, 1), (.expired, .deadlinePassed, 20),
        ] as [(QuestionState, QuestionState.Event, Double)])
    func `All other events are refused and change nothing`(
        _ from: QuestionState, _ event: QuestionState.Event, _ second: Double
    ) {
        var state = from
        let name = event == .deadlinePassed ? "deadlinePassed" : "answer"
        #expect(throws: Refused(state: from.phase.rawValue, event: name)) {
            try state.handle(event, deadline: Self.deadline, at: .after(second))
        }
        #expect(state == from)
    }
}
