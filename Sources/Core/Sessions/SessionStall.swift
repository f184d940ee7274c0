package import Formats

/// A stall of a session, as its event keeps it.
package struct SessionStall: Shape {
    /// Running tasks, none of which made progress.
    package var taskCount: Int64 = 0
    /// The last progress of any of them.
    package var since = Timestamp()
    /// Why the last attempts of some of them failed, without repetitions.
    package var errors: [TaskError] = []

    /// Errors are kept of so many kinds.
    package static let errorsKept = 10

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("taskCount", &taskCount)
        members.member("since", &since)
        members.member("errors", &errors)
    }

    /// Adds the error of a task's last attempt, unless a task before had the same one.
    package mutating func add(_ error: TaskError) {
        guard errors.count < Self.errorsKept else { return }
        let isKnown = errors.contains {
            $0.code == error.code && $0.localizedDescription == error.localizedDescription
        }
        if !isKnown { errors.append(error) }
    }
}
