/// The public names of a task: its app and session, its `taskIdentifier`, and its client id.
package struct TaskName: Hashable, Sendable {
    package let app: String
    package let session: String
    /// The `taskIdentifier`.
    package let number: Int64
    package let clientTaskId: String?

    package init(app: String, session: String, number: Int64, clientTaskId: String?) {
        self.app = app
        self.session = session
        self.number = number
        self.clientTaskId = clientTaskId
    }
}
