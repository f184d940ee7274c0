/// A test waited for something that did not happen in time.
package struct DeadlineExceeded: Error, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = "not in time: " + description }
}

/// Waits until `condition` holds, checking every 20 ms; throws `DeadlineExceeded` if it does not within `limit`.
package func eventually(
    _ what: String = "condition", within limit: Duration = .seconds(60),
    _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + limit
    while true {
        if try await condition() { return }
        guard ContinuousClock.now < deadline else { throw DeadlineExceeded(what) }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// Waits until `value` is not `nil` and returns it; throws `DeadlineExceeded` if it stays `nil`.
package func eventually<Value>(
    _ what: String = "value", within limit: Duration = .seconds(60),
    value: () async throws -> Value?
) async throws -> Value {
    let deadline = ContinuousClock.now + limit
    while true {
        if let found = try await value() { return found }
        guard ContinuousClock.now < deadline else { throw DeadlineExceeded(what) }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// Checks that `condition` holds throughout; throws `DeadlineExceeded` if it stops before `time` is over.
package func stays(
    _ what: String = "condition", for time: Duration, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + time
    while ContinuousClock.now < deadline {
        guard try await condition() else { throw DeadlineExceeded("\(what) for \(time)") }
        try await Task.sleep(for: .milliseconds(50))
    }
}
