import Base
import Core
import TestSupport
import Testing

/// One misbehaviour of an origin, performed against the real service.
struct Misdeed: Sendable, CustomTestStringConvertible {
    /// `O-01` to `O-75`. Several misdeeds with one identifier are variants.
    let id: String
    /// The origin's behaviour.
    let does: String
    var configuration: JSON = quick
    /// Whether it needs names and trust of its own.
    var needsNames = false
    /// Performs it, and throws unless the result is the expected one.
    let play: @Sendable (Scene) async throws -> Void

    var testDescription: String { "\(id) \(does)" }

    /// Attempts without delay.
    static let quick = retrying([:])

    /// A configuration with attempts without delay, and more members of `retryPolicy` and of the configuration.
    static func retrying(_ policy: [String: JSON], _ more: [String: JSON] = [:]) -> JSON {
        let policy: [String: JSON] = policy.merging(["initialDelay": 0.1, "maximumDelay": 0.1]) { given, _ in given }
        return .object(more.merging(["retryPolicy": .object(policy)]) { given, _ in given })
    }
}

extension Misdeed {
    /// A download of one path whose requests meet `turns`; afterwards the resource is served correctly, unless there is
    /// an `always`.
    init(
        _ id: String, _ does: String, of resource: Resource = .generated(seed: 1, length: 200),
        turns: [[Misbehaviour]] = [], always: [Misbehaviour]? = nil, configuration: JSON = quick,
        task: [String: JSON] = [:], owed: Owed
    ) {
        self.init(id: id, does: does, configuration: configuration) { scene in
            if let always {
                scene.origin.serve("/a", resource, always: always)
            } else {
                scene.origin.serve("/a", resource, turns: turns)
            }
            try await owed.holds(of: try await scene.download("/a", task), on: scene)
        }
    }
}

/// A difference from the expected result.
struct Wrong: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Throws if a condition does not hold, so that a misdeed counts as handled only if every condition held.
func require(_ condition: Bool, _ what: @autoclosure () -> String, location: SourceLocation = #_sourceLocation) throws {
    guard !condition else { return }
    throw Wrong("\(location.fileName):\(location.line): \(what())")
}

/// The expected result of a misdeed.
struct Owed: Sendable {
    enum End: Sendable {
        case succeeded([UInt8])
        /// An unsuccessful status, and its page if it matters.
        case status(Int, page: [UInt8]?)
        /// An error with Apple's code.
        case failed(Int)
    }

    var end: End
    /// The number of attempts.
    var attempts: Int?
    /// The `Range` of each request of the path, empty for none.
    var ranges: [String]?
    /// The error of each exchange of the task, empty if it succeeded.
    var faults: [String]?
    var also: @Sendable (Ended) throws -> Void = { _ in }

    static func content(
        _ bytes: [UInt8], attempts: Int? = nil, ranges: [String]? = nil, faults: [String]? = nil,
        also: @escaping @Sendable (Ended) throws -> Void = { _ in }
    ) -> Owed {
        Owed(end: .succeeded(bytes), attempts: attempts, ranges: ranges, faults: faults, also: also)
    }

    static func status(
        _ status: Int, page: [UInt8]? = nil, attempts: Int? = 1,
        also: @escaping @Sendable (Ended) throws -> Void = { _ in }
    ) -> Owed {
        Owed(end: .status(status, page: page), attempts: attempts, also: also)
    }

    static func failed(
        _ code: Int, attempts: Int? = 1, ranges: [String]? = nil, faults: [String]? = nil,
        also: @escaping @Sendable (Ended) throws -> Void = { _ in }
    ) -> Owed {
        Owed(end: .failed(code), attempts: attempts, ranges: ranges, faults: faults, also: also)
    }

    /// Waits for the end of a task and compares it with the expected result.
    @discardableResult
    func holds(of number: Int, path: String = "/a", on scene: Scene) async throws -> Ended {
        let ended = try await Ended(number, path: path, on: scene)
        let task = ended.task
        let code = task["error"]["code"].int
        switch end {
        case .succeeded(let bytes):
            try require(task["outcome"] == "succeeded" && task["error"].isNull, "not succeeded: \(task)")
            try require(ended.content == bytes, "\(ended.content.count) bytes of content, not the \(bytes.count)")
            try require(task["content"]["length"].int == bytes.count, "\(task["content"])")
            try require(task["content"]["digest"]["value"].string == Content.sha256(of: bytes), "\(task["content"])")
        case .status(let status, let page):
            try require(task["outcome"] == "httpError" && task["error"].isNull, "no HTTP result: \(task)")
            try require(task["response"]["statusCode"].int == status, "\(task["response"])")
            if let page { try require(ended.content == page, "page of \(ended.content.count) bytes") }
        case .failed(let expected):
            try require(task["outcome"] == "failed" && code == expected, "not failed with \(expected): \(task)")
            try require(task["content"].isNull, "\(task)")
        }
        if let attempts {
            try require(
                task["attempts"]["count"].int == attempts,
                "not \(attempts) attempts: \(task["attempts"]) after \(ended.exchanges)")
        }
        if let ranges { try require(ended.ranges == ranges, "asked for \(ended.ranges), not \(ranges)") }
        if let faults { try require(ended.faults == faults, "failed by \(ended.faults), not \(faults)") }
        try also(ended)
        return ended
    }
}

/// A completed task with all visible results.
struct Ended: Sendable {
    let task: JSON
    let content: [UInt8]
    /// The session's stored events.
    let events: [JSON]
    /// The origin's requests of the path.
    let requests: [OriginServer.Request]
    /// `transactionMetrics`: each exchange of the task.
    let exchanges: [JSON]

    init(_ number: Int, path: String, on scene: Scene) async throws {
        task = try await scene.completed(number)
        content = task["content"].isNull ? [] : try await scene.content(number).body
        let events = try await scene.events()
        expectSound(events)
        self.events = events
        requests = scene.origin.requests(path)
        let metrics = events.first {
            $0["type"] == "task.didFinishCollectingMetrics" && $0["taskIdentifier"].int == number
        }
        exchanges = metrics?["data"]["transactionMetrics"].array ?? []
    }

    var ranges: [String] { requests.map { $0.fields["Range"] ?? "" } }

    var faults: [String] { exchanges.map { $0["error"].string ?? "" } }

    /// Offsets of `task.didResumeAtOffset`.
    var resumptions: [Int] {
        events.filter { $0["type"] == "task.didResumeAtOffset" }.compactMap { $0["data"]["fileOffset"].int }
    }

    /// A field of the task's response.
    func field(_ name: String) -> String? {
        task["response"]["headers"].object?.first { $0.key.asciiLowercased == name.asciiLowercased }?.value.string
    }
}

/// The bytes of a message: lines, an empty line, a body.
func message(_ lines: String..., body: [UInt8] = []) -> [UInt8] {
    Array((lines.map { $0 + "\r\n" }.joined() + "\r\n").utf8) + body
}

/// Some bytes of the misdeeds' content.
func bytes(_ range: Range<Int>, seed: UInt64 = 1) -> [UInt8] { Content.bytes(seed: seed, range: range) }
