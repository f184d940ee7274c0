import Core
import SQL

/// How many tasks of a session had completed, by outcome: kept with each `task.didComplete`, so that the completions
/// between two of them are a difference.
extension TaskCounts {
    /// Five numbers in the order of ``Outcome``, with commas between.
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
    /// As a session's row keeps them.
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
