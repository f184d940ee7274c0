import Base
import Core
import Formats
import TestSupport
import Testing

@testable import Store

/// The places of sets, which do not overlap.
extension SetStoreTests {
    private static func destination(_ path: String, isFolder: Bool = true) -> SetDestination {
        SetDestination {
            if isFolder { ($0.root, $0.path) = ("out", path) } else { ($0.bucket, $0.prefix) = ("media", path) }
        }
    }

    @discardableResult
    private func set(
        _ name: String, at path: String, isFolder: Bool = true, _ layout: SetLayout = .versions
    ) async throws -> SetRecord {
        try await set(name) { ($0.layout, $0.destination) = (layout, Self.destination(path, isFolder: isFolder)) }
    }

    private func make(_ set: SetRecord, of repository: String) async throws {
        var source = SetSource()
        (source.kind, source.repository) = (.huggingface, repository)
        let id = try await sets.begin(
            NewSetVersion(publicId: Identifier.make(prefix: "sver_"), source: source, metadata: [:]), of: set,
            in: session, at: fixture.now)
        _ = try await sets.finish(id, named: nil, fingerprint: Array(repository.utf8), at: fixture.now)
    }

    @Test(arguments: [("a/b", "a/b"), ("a/b", "a/b/.versions/v1"), ("a/b/c", "a")])
    func `No set has a destination at, above or below that of another`(_ one: String, _ other: String) async throws {
        for isFolder in [true, false] {
            try await set("one \(isFolder)", at: one, isFolder: isFolder)
            await #expect(throws: DomainError.setDestinationTaken) {
                try await set("other \(isFolder)", at: other, isFolder: isFolder)
            }
            for (name, path) in [("1", "\(one)0"), ("2", "\(one)-/x"), ("3", "b")] {
                try await set("\(name) \(isFolder)", at: path, isFolder: isFolder)
            }
            try await set("one \(isFolder)", at: "\(one)/deeper", isFolder: isFolder)
        }
    }

    @Test func `Sets of one cache of huggingface_hub share its folder, and no other set is in that of a repository`()
        async throws
    {
        let (first, second) = (try await set("1", at: "hub", .hfCache), try await set("2", at: "hub", .hfCache))
        try await make(first, of: "org/a")
        let taken: [(String, SetLayout)] = [
            ("hub", .versions), ("hub/models--org--a/x", .versions), ("hub/models--org--a", .hfCache),
        ]
        for (path, layout) in taken {
            await #expect(throws: DomainError.setDestinationTaken, "\(path)") {
                try await set("other", at: path, layout)
            }
        }
        try await set("beside", at: "hub/data")
        try await set("within", at: "hub/models--org--b/x")
        await #expect(throws: DomainError.setRepositoryTaken) { try await make(second, of: "org/b") }
        try await make(second, of: "org/c")
        await #expect(throws: DomainError.setDestinationTaken) { try await set("other", at: "hub/data/x", .hfCache) }
    }

    @Test func `A set waits for the removal of a deleted set above or below it`() async throws {
        for (path, name) in [("m", "above"), ("m/a/b", "below"), ("m/a", "equal")] {
            let deleted = try await set(name, at: path)
            _ = try await sets.forget(deleted.id, keepsFiles: false, ifRevision: nil, at: fixture.now)
            let next = try await set("next \(name)", at: "m/a")
            #expect(try await sets.isOccupied(next.id), "\(name)")
            try await sets.remove(deleted.id)
            #expect(try await !sets.isOccupied(next.id), "\(name)")
            _ = try await sets.forget(next.id, keepsFiles: false, ifRevision: nil, at: fixture.now)
            try await sets.remove(next.id)
        }
    }

    @Test func `No task writes among the published files of a set`() async throws {
        try await set("disk", at: "da")
        try await set("bucket", at: "da", isFolder: false)
        try await make(set("cache", at: "hub", .hfCache), of: "org/a")
        func create(_ path: String, isFolder: Bool = true) async throws {
            let task = fixture.download { specification in
                if isFolder {
                    specification.destination = Destination(root: "out", path: path, replace: true)
                } else {
                    specification.destinationObject = ObjectDestination { ($0.bucket, $0.key) = ("media", path) }
                }
            }
            try await fixture.create([fixture.download(), task], in: session)
        }
        for path in ["da/.versions/v1/f", "da/.versions/\u{301}/f", "da/current", "hub/models--org--a/refs/main"] {
            await #expect(throws: DomainError.destinationOfSet(index: 1), "\(path)") { try await create(path) }
        }
        for path in ["da/versions/v1/f", "da/manifests/v1.json", "da/current.json"] {
            await #expect(throws: DomainError.destinationOfSet(index: 1), "\(path)") {
                try await create(path, isFolder: false)
            }
        }
        for path in ["da/f", "da/currents", "d/.versions/f", "da/versions/f", "hub/models--org--b/refs/main"] {
            try await create(path)
        }
        try await create("da/.versions/v1/f", isFolder: false)
        try await expectSoundLedger(fixture)
    }
}
