import Testing

@testable import Core

@Suite struct SetVersionStateTests {
    private typealias State = SetVersionState

    /// The events that change a state.
    private static let changes: [State: [State.Event: State]] = [
        .expanding: [.listed: .fetching, .failed: .failed, .overtaken: .superseded, .cancel: .cancelled],
        .fetching: [.fetched: .verifying, .failed: .failed, .cancel: .cancelled],
        .verifying: [.verified: .publishing, .failed: .failed, .overtaken: .superseded, .cancel: .cancelled],
        .publishing: [.published: .published, .failed: .failed, .overtaken: .superseded, .cancel: .cancelled],
        .published: [:],
        .failed: [.retryFiles: .fetching, .retryList: .expanding],
        .superseded: [:],
        .cancelled: [:],
    ]

    @Test(arguments: SetVersionState.allCases)
    func `Every event has one resulting state`(_ state: SetVersionState) throws {
        let changes = try #require(Self.changes[state])
        for event in State.Event.allCases {
            #expect(state.after(event) == changes[event] ?? state, "\(event)")
        }
        // A version that has ended is never published, unless it failed and is retried.
        #expect(state.isInFlight == (changes[.cancel] != nil))
    }
}
