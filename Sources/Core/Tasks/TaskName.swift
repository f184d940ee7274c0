/// What people call a task: where it is, its `taskIdentifier`, and the name its app gave it.
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
