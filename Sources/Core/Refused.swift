/// An event that does not apply to a machine's state; the state did not change. The API answers 409.
package struct Refused: Error, Hashable, Sendable {
    /// The state's name, without its data.
    package var state: String
    /// The event's name, without its data.
    package var event: String

    package init(state: String, event: String) {
        self.state = state
        self.event = event
    }
}
