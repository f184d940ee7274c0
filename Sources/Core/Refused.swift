/// An event that does not fit the state of a state machine. The state is unchanged. The API responds with 409.
package struct Refused: Error, Hashable, Sendable {
    /// The state's name, without its data.
    package var state: String
    /// The event's name, without its data.
    package var event: String

    package init(state: String, event: String) {
        self.state = state
        self.event = event
    }

    /// - Parameter event: A case of an enum.
    init(_ state: String, _ event: some Any) {
        self.init(state: state, event: String("\(event)".prefix { $0 != "(" }))
    }
}
