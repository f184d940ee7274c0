import Base
import Core

/// The condition that a store checks before it writes an object.
package enum WriteCondition: Hashable, Sendable {
    case none
    /// No object has the key.
    case absent
    /// The object has this entity tag.
    case unchanged(String)

    func write(to headers: inout HTTPFields) {
        switch self {
        case .none: break
        case .absent: headers.append("If-None-Match", "*")
        case .unchanged(let tag): headers.append("If-Match", tag)
        }
    }
}

/// The conditions that a store supports. Many stores ignore unknown ones.
package struct HeededConditions: Hashable, Sendable {
    package var absent = false
    package var unchanged = false
}

extension BucketClient {
    private static func newProbe() -> String { ".urlsessiond-probe-\(RandomBytes.make(8).hexadecimal)" }

    /// Writes and removes an object, to check that the store permits both. Each is tried once, with short timeouts.
    package func tryToWrite() async throws(BucketFault) {
        let target = bucket.target(Self.newProbe())
        _ = try await send(
            "PUT", target, .repeatable, headers: ObjectTerms(mark: "probe").fields,
            content: SentBytes([], isWhole: true), attempts: 1, isHasty: true)
        _ = try await send("DELETE", target, .repeatable, attempts: 1, isHasty: true)
    }

    /// The conditions that the store supports: tested once, with an object that is removed again.
    package func heededConditions() async throws(BucketFault) -> HeededConditions {
        if let known = heeded.withLock({ $0 }) { return known }
        let key = Self.newProbe()
        let tag = try await put(key, SentBytes([], isWhole: true), ObjectTerms(mark: "probe"))
        var found = HeededConditions()
        found.absent = try await refuses(key, .absent)
        if let tag, try await refuses(key, .unchanged("\"0\"")) {
            found.unchanged = try await !refuses(key, .unchanged(tag))
        }
        try await delete(key)
        heeded.withLock { $0 = found }
        return found
    }

    /// Whether the store refuses to write a probe under a condition.
    private func refuses(_ key: String, _ condition: WriteCondition) async throws(BucketFault) -> Bool {
        do throws(BucketFault) {
            _ = try await put(key, SentBytes([], isWhole: true), ObjectTerms(mark: "probe"), if: condition)
            return false
        } catch {
            guard error.remedy == .exists else { throw error }
            return true
        }
    }
}
