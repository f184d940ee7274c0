import Base
import Core

/// What a store checks before it writes an object.
package enum WriteCondition: Hashable, Sendable {
    case none
    /// There is no object of the key.
    case absent
    /// The object is the one with this entity tag.
    case unchanged(String)

    func write(to headers: inout HTTPFields) {
        switch self {
        case .none: break
        case .absent: headers.append("If-None-Match", "*")
        case .unchanged(let tag): headers.append("If-Match", tag)
        }
    }
}

/// Which conditions a store heeds. Many ignore what they do not know.
package struct HeededConditions: Hashable, Sendable {
    package var absent = false
    package var unchanged = false
}

extension BucketClient {
    private static func newProbe() -> String { ".urlsessiond-probe-\(RandomBytes.make(8).hexadecimal)" }

    /// Writes an object and removes it again, to find out whether the store lets the service do so. Each is tried once, and
    /// not for long.
    package func tryToWrite() async throws(BucketFault) {
        let target = bucket.target(Self.newProbe())
        _ = try await send(
            "PUT", target, .repeatable, headers: ObjectTerms(mark: "probe").fields,
            content: SentBytes([], isWhole: true), attempts: 1, isHasty: true)
        _ = try await send("DELETE", target, .repeatable, attempts: 1, isHasty: true)
    }

    /// Which conditions the store heeds: asked once, with an object that is removed again.
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

    /// Whether the store does not write a probe under a condition.
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
