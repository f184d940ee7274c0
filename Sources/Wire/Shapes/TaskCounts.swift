/// How many tasks of a session are where.
public struct TaskCounts: Sendable, Hashable, JSONWritable, JSONReadable {
    /// Tasks that wait for `resume`.
    public var suspended: Int64 = 0
    /// Tasks that run, or wait to.
    public var running: Int64 = 0
    /// Tasks being cancelled.
    public var canceling: Int64 = 0
    /// Tasks that are done, whatever came of them.
    public var completed: Int64 = 0
    /// Of the completed ones, by outcome.
    public var outcomes = OutcomeCounts()

    /// Makes counts of nothing.
    public init() {}

    /// Reads counts.
    public init(reading reader: inout ObjectReader) {
        suspended = reader.integer("suspended")
        running = reader.integer("running")
        canceling = reader.integer("canceling")
        completed = reader.integer("completed")
        outcomes = OutcomeCounts(reading: &reader)
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            writer.member("suspended", suspended)
            writer.member("running", running)
            writer.member("canceling", canceling)
            writer.member("completed", completed)
            outcomes.writeMembers(to: &writer)
        }
    }
}

/// How many completed tasks ended how.
public struct OutcomeCounts: Sendable, Hashable, JSONWritable, JSONReadable {
    /// With an acceptable status.
    public var succeeded: Int64 = 0
    /// With any other status.
    public var httpError: Int64 = 0
    /// With an error.
    public var failed: Int64 = 0
    /// By `cancel`.
    public var cancelled: Int64 = 0
    /// With a 304 to the app's own validator.
    public var notModified: Int64 = 0

    /// Makes counts of nothing.
    public init() {}

    /// Reads counts.
    public init(reading reader: inout ObjectReader) {
        succeeded = reader.integer("succeeded")
        httpError = reader.integer("httpError")
        failed = reader.integer("failed")
        cancelled = reader.integer("cancelled")
        notModified = reader.integer("notModified")
    }

    /// Writes an object.
    public func write(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

    func writeMembers(to writer: inout JSONWriter) {
        writer.member("succeeded", succeeded)
        writer.member("httpError", httpError)
        writer.member("failed", failed)
        writer.member("cancelled", cancelled)
        writer.member("notModified", notModified)
    }
}
