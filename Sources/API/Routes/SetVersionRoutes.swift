import Base
import Core
import Formats
import HTTPServer
import Launches
import Service
import Wire
import WireMapping

extension Call {
    /// The version in the path, and its set.
    func setVersion() async throws -> (SetRecord, SetVersionRecord) {
        let set = try await set()
        return (set, try await service.version(parameter("version"), of: set.id))
    }

    func readVersion() async throws -> HTTPResponse {
        let (set, version) = try await setVersion()
        return show(version, in: set)
    }

    /// - Parameter set: The version's set.
    private func show(
        _ version: SetVersionRecord, in set: SetRecord, status: Int = 200, location: String? = nil
    ) -> HTTPResponse {
        resource(
            SetVersion(version, of: set.name, server.launches.urls), version: Version(version), status: status,
            location: location, isLive: version.state.isInFlight)
    }

    func listVersions() async throws -> HTTPResponse {
        let span = try span()
        let set = try await set()
        return try await page(
            fetch: { try await service.versions(of: set.id, span, after: $0, limit: $1) }, position: \.id.rawValue,
            write: { SetVersion($0, of: set.name, server.launches.urls) })
    }

    func command(
        _ command: (SetVersionID, _ revision: Int64?) async throws -> SetVersionRecord, status: Int
    ) async throws -> HTTPResponse {
        let (set, version) = try await setVersion()
        let changed = try await command(version.id, expectedRevision(of: Version(version)))
        return show(changed, in: set, status: status)
    }

    // MARK: Creating

    /// The maximum number of files that the service adds at once.
    static let filesAtOnce = 1000

    func createVersion() async throws -> HTTPResponse {
        let set = try await set()
        if hasLines { return try await SetLines(call: self, set: set).answer() }
        let creation = try read(SetVersionCreation.self)
        let files = try (creation.files ?? []).checked { index, file throws(JSONError) in
            try SetFile(checking: file, at: "/files/\(index)")
        }
        let order = try SetVersionOrder(creation.head, creation.source)
        var fingerprint = SetFingerprint(creation.head, creation.source)
        for file in creation.files ?? [] { fingerprint.add(file) }
        let draft = try await begin(order, in: creation.session, of: set)
        do {
            for start in stride(from: 0, to: files.count, by: Self.filesAtOnce) {
                let group = files[start..<min(start + Self.filesAtOnce, files.count)]
                do {
                    try await service.add(Array(group), to: draft)
                } catch {
                    throw server.problem(for: error, of: request, OrderPlaces(order: { "/files/\(start + $0)" }))
                }
            }
            return try await finish(draft, fingerprint, of: set)
        } catch {
            await service.discard(draft)
            throw error
        }
    }

    /// Begins to receive a version whose files a session fetches.
    func begin(_ order: SetVersionOrder, in session: String, of set: SetRecord) async throws -> SetDraft {
        if set.configuration.layout == .hfCache, order.source?.kind != .huggingface {
            throw JSONError.invalid(
                "A set with the layout hf-cache has versions with a source of the kind huggingface only.",
                at: order.source == nil ? "" : "/source/kind")
        }
        let found = try await self.session(named: session)
        guard found.state == .active else { throw DomainError.sessionInvalidated }
        return try await service.beginVersion(order, of: set, in: found)
    }

    /// The response with a version that was received whole: 201 if it is new, 200 if the same request created it before.
    func finish(_ draft: SetDraft, _ fingerprint: SetFingerprint, of set: SetRecord) async throws -> HTTPResponse {
        try await creating(holdsSecrets: true) { recording in
            try await service.finish(draft, fingerprint: fingerprint.digest, recording: recording)
        } answer: { received in
            let version = received.version
            guard received.isNew else { return show(version, in: set) }
            return show(version, in: set, status: 201, location: "/v1/sets/\(set.name)/versions/\(version.publicId)")
        }
    }
}

extension SetVersionOrder {
    init(_ head: SetVersionHead, _ source: Wire.SetSource?) throws(JSONError) {
        self.init()
        name = head.version
        if let source { self.source = try Core.SetSource(checking: source) }
        metadata = Dictionary(head.metadata.map { ($0.name, $0.value) }) { _, last in last }
    }
}

/// The identity of a request for a version: SHA-256 over its members and files, in JSON and as lines the same.
struct SetFingerprint {
    private let running = Digest()

    init(_ head: SetVersionHead, _ source: Wire.SetSource? = nil) {
        var head = head
        head.metadata = StringMap(head.metadata.map { (name: $0.name, value: $0.value) }.sorted { $0.name < $1.name })
        running.update(head.jsonBytes)
        if let source { running.update(source.jsonBytes) }
    }

    mutating func add(_ file: SetVersionFile) { running.update(file.jsonBytes) }

    var digest: [UInt8] { running.soFar() }
}
