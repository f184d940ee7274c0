import Testing

@testable import Core

@Suite struct QuestionStateTests {
    static let open = QuestionState.open(deadline: .after(10))

    @Test(
        arguments: [
            (open, .answer, 9.9, .answered(at: .after(9.9)), [.continueTask]),
            (open, .deadlinePassed, 10, .expired(at: .after(10)), [.failTask]),
            (open, .taskEnded, 1, .expired(at: .after(1)), []),
            (.answered(at: now), .taskEnded, 1, .answered(at: now), []),
            (.expired(at: now), .taskEnded, 1, .expired(at: now), []),
        ] as [(QuestionState, QuestionState.Event, Double, QuestionState, [QuestionState.Effect])])
    func `follows each arrow of the diagram`(
        _ from: QuestionState, _ event: QuestionState.Event, _ second: Double, _ to: QuestionState,
        _ effects: [QuestionState.Effect]
    ) throws {
        var state = from
        #expect(try state.handle(event, at: .after(second)) == effects)
        #expect(state == to)
    }

    @Test(
        arguments: [
            (open, .answer, 10), (open, .deadlinePassed, 9.9), (.answered(at: now), .answer, 1),
            (.answered(at: now), .deadlinePassed, 20), (.expired(at: now), .answer, 1),
            (.expired(at: now), .deadlinePassed, 20),
        ] as [(QuestionState, QuestionState.Event, Double)])
    func `refuses the rest and stays`(_ from: QuestionState, _ event: QuestionState.Event, _ second: Double) {
        var state = from
        #expect(throws: Refused(state: from.name, event: event.rawValue)) {
            try state.handle(event, at: .after(second))
        }
        #expect(state == from)
    }
}
