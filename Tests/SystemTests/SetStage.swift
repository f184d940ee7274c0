import Base
import Core
import TestSupport
import Testing

/// The short functions of tests of sets.
extension Scene {
    static let lines = ("Content-Type", "application/x-ndjson")

    @discardableResult
    func makeSet(
        _ name: String = "m", _ put: JSON = [:], location: SourceLocation = #_sourceLocation
    ) async throws -> APIClient.Answer {
        let answer = try await api.put("/v1/sets/\(name)", put)
        try #require(answer.status == 201, "\(answer.text)", sourceLocation: location)
        return answer
    }

    /// The JSON of a file at a path of the origin.
    func file(_ path: String, at place: String, _ more: [String: JSON] = [:]) -> JSON {
        var members: [String: JSON] = ["path": .string(path), "request": ["url": .string(origin.url(place))]]
        members.merge(more) { _, new in new }
        return .object(members)
    }

    /// Sends a version of the set `m`, fetched by the session `s`.
    func send(
        _ version: String?, files: [JSON]? = nil, source: JSON? = nil, to set: String = "m", in session: String = "s"
    ) async throws -> APIClient.Answer {
        var creation: JSON = ["session": .string(session)]
        if let version { creation["version"] = .string(version) }
        if let files { creation["files"] = .array(files) }
        if let source { creation["source"] = source }
        return try await api.post("/v1/sets/\(set)/versions", creation)
    }

    /// Sends a version and returns its `versionId`.
    @discardableResult
    func create(
        _ version: String?, files: [JSON]? = nil, source: JSON? = nil, in set: String = "m",
        location: SourceLocation = #_sourceLocation
    ) async throws -> String {
        let answer = try await send(version, files: files, source: source, to: set)
        try #require(answer.status == 201, "\(answer.text)", sourceLocation: location)
        return try #require(answer.json["versionId"].string, sourceLocation: location)
    }

    /// Waits until a version has a state and returns it.
    @discardableResult
    func version(
        _ version: String, is state: String, in set: String = "m", within limit: Duration = .seconds(60)
    ) async throws -> JSON {
        var last = JSON.null
        do {
            return try await eventually("version \(version) is \(state)", within: limit) { () -> JSON? in
                last = try await api.get("/v1/sets/\(set)/versions/\(version)").json
                return last["state"].string == state ? last : .none
            }
        } catch is DeadlineExceeded {
            throw DeadlineExceeded("version \(version) is \(state): \(last)")
        }
    }

    /// The name of the current version.
    func current(_ set: String = "m") async throws -> String? {
        try await api.get("/v1/sets/\(set)").json["current"]["version"].string
    }
}
