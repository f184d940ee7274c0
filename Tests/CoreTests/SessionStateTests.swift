import Testing

@testable import Core

@Suite struct SessionStateTests {
    private static let invalid = SessionState.invalid(since: .after(-5))

    @Test(
        arguments: [
            (.active, .invalidate, .invalidating, []),
            (.active, .noTaskLeft, .active, []),
            (.active, .forget, .invalid(since: now), []),
            (.invalidating, .invalidate, .invalidating, []),
            (.invalidating, .noTaskLeft, .invalid(since: now), [.tellInvalid]),
            (.invalidating, .forget, .invalid(since: now), []),
            (invalid, .invalidate, invalid, []),
            (invalid, .noTaskLeft, invalid, []),
            (invalid, .forget, invalid, []),
        ] as [(SessionState, SessionState.Event, SessionState, [SessionState.Effect])])
    func `Every event has one resulting state`(
        _ from: SessionState, _ event: SessionState.Event, _ to: SessionState, _ effects: [SessionState.Effect]
    ) {
        var state = from
        #expect(state.handle(event, at: now) == effects)
        #expect(state == to)
    }
}
