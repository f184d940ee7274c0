package import Formats

/// A stall of a session, as its event stores it.
package struct SessionStall: Shape {
    /// The number of running tasks, none of which made progress.
    package var taskCount: Int64 = 0
    /// The last progress of any of them.
    package var since = Timestamp()
    /// The distinct errors of the last attempts of some tasks.
    package var errors: [TaskError] = []

    /// The maximum number of stored errors.
    package static let errorsKept = 10

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskCount", &taskCount)
        members.member("since", &since)
        members.member("errors", &errors)
    }

    /// Adds the error of a task's last attempt, unless an equal one was added.
    package mutating func add(_ error: TaskError) {
        guard errors.count < Self.errorsKept else { return }
        let isKnown = errors.contains {
            $0.code == error.code && $0.localizedDescription == error.localizedDescription
        }
        if !isKnown { errors.append(error) }
    }
}
