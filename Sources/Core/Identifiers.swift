/// The store's number of an app. Clients see the app's identifier instead.
package struct AppID: Hashable, Sendable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// The store's number of one incarnation of a session. Never reused.
package struct SessionID: Hashable, Sendable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}

/// The store's number of a question, and its public id, which is `nil` if it was lost with the master key.
package struct QuestionID: Hashable, Sendable {
    package let rawValue: Int64
    package let publicId: String?
    package init(_ rawValue: Int64, publicId: String?) {
        self.rawValue = rawValue
        self.publicId = publicId
    }
}

/// The store's number of a task. Clients see the `taskIdentifier` within its session instead.
package struct TaskID: Hashable, Sendable {
    package let rawValue: Int64
    package init(_ rawValue: Int64) { self.rawValue = rawValue }
}
