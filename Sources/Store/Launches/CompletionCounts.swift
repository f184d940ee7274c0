import Core
import SQL

/// The numbers of completed tasks of a session by outcome. Each `task.didComplete` stores them, so that the completions
/// between two events are a difference.
extension TaskCounts {
    /// Five numbers in the order of ``Outcome``, separated by commas.
    var completions: [UInt8] {
        Array(Outcome.allCases.map { String(self[$0]) }.joined(separator: ",").utf8)
    }

    init(completions text: [UInt8]) {
        self.init()
        let numbers = text.split(separator: UInt8(ascii: ",")).map { Int64(String(decoding: $0, as: UTF8.self)) ?? 0 }
        for (outcome, number) in zip(Outcome.allCases, numbers) { self[outcome] = number }
    }
}

extension TaskCounts {
    /// The counts in a session's row.
    init(_ row: Row) {
        self.init()
        suspended = row.integer("suspended")
        running = row.integer("running")
        succeeded = row.integer("succeeded")
        httpError = row.integer("http_error")
        failed = row.integer("failed")
        cancelled = row.integer("cancelled")
        notModified = row.integer("not_modified")
    }
}
