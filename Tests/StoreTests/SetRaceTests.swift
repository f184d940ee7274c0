import Core
import TestSupport
import Testing

@testable import Store

/// Calls of the app between the steps of the work on a set, and steps that are repeated.
extension SetStoreTests {
    @Test func `A version that is being switched to is not retired`() async throws {
        let set = try await set {
            $0.keep = 0
            $0.grace = 0
        }
        let first = try await published(set, [file("a")], named: "1")
        _ = try await published(set, [file("a")], named: "2")
        _ = try await sets.beginSwitch(of: set.id, to: first.id, ifRevision: nil, at: fixture.now)
        _ = try await sets.retire(set.id, but: [], at: fixture.now)
        _ = try await sets.endSwitch(of: set.id, to: first.id, at: fixture.now)
        #expect(try await sets.read(set.id).kept.map(\.name).contains("1"))
        #expect(try await sets.standing(of: first.id)?.isRemoving == false)
    }

    @Test func `The current version is shown again after a switch that was withdrawn or given up`() async throws {
        let set = try await set()
        let first = try await published(set, [file("a")], named: "1")
        let second = try await published(set, [file("a")], named: "2")
        func switching() async throws -> SetVersionID? { try await sets.standing(of: set.id)?.switching?.id }
        _ = try await sets.beginSwitch(of: set.id, to: second.id, ifRevision: nil, at: fixture.now)
        #expect(try await switching() == nil, "it is current")
        for isGivenUp in [false, true] {
            _ = try await sets.beginSwitch(of: set.id, to: first.id, ifRevision: nil, at: fixture.now)
            if isGivenUp {
                try await sets.abandonSwitch(of: set.id, to: second.id)
                #expect(try await switching() == first.id, "another switch was ordered since")
                try await sets.abandonSwitch(of: set.id, to: first.id)
            } else {
                _ = try await sets.beginSwitch(of: set.id, to: second.id, ifRevision: nil, at: fixture.now)
            }
            #expect(try await switching() == second.id)
            let events = try await fixture.kinds(session).count
            _ = try await sets.endSwitch(of: set.id, to: second.id, at: fixture.now)
            #expect(try await switching() == nil)
            #expect(try await sets.read(set.id).current?.id == second.id)
            #expect(try await fixture.kinds(session).count == events, "nothing has changed")
        }
        _ = try await sets.beginSwitch(of: set.id, to: first.id, ifRevision: nil, at: fixture.now)
        try await sets.abandonSwitch(of: set.id, to: first.id)
        try await sets.abandonSwitch(of: set.id, to: second.id)
        #expect(try await switching() == nil)
    }

    @Test func `A version that was retried is not removed, and a draft of a deleted set is not received`() async throws
    {
        let set = try await set()
        let version = try await make(set, [file("a")])
        _ = try await sets.handle(.failed, version.id, at: fixture.now)
        _ = try await sets.retry(version.id, ifRevision: nil, at: fixture.now)
        #expect(try await !sets.beginRemoval(of: version.id))
        #expect(try await sets.standing(of: version.id)?.isRemoving == false)
        let draft = try await begin(set, [file("a")])
        _ = try await sets.forget(set.id, keepsFiles: false, ifRevision: nil, at: fixture.now)
        await #expect(throws: DomainError.notFound) {
            try await sets.finish(draft, named: nil, fingerprint: [], at: fixture.now)
        }
        try await expectSoundLedger(fixture)
    }

    @Test func `A refused file may have another length when it is fetched again`() async throws {
        let set = try await set()
        let version = try await make(set, [file("a"), file("b", length: 7)])
        for task in try await start(version).values { try await complete(task) }
        _ = try await sets.handle(.fetched, version.id, at: fixture.now)
        #expect(try await sets.read(version.id).bytes.total == 14)
        _ = try await sets.fail([("a", "other"), ("b", "other")], of: version.id, at: fixture.now)
        #expect(try await sets.read(version.id).bytes.total == 7)
        _ = try await sets.handle(.failed, version.id, at: fixture.now)
        _ = try await sets.retry(version.id, ifRevision: nil, at: fixture.now)
        let again = try await start(version)
        try await complete(#require(again["a"]), bytes: Array("longer content".utf8))
        try await complete(#require(again["b"]), bytes: Array("longer content".utf8))
        let files = try await sets.read(version.id)
        #expect(files.bytes.total == 21 && files.failedFiles == 1, "the length of b is listed")
        try await expectSoundLedger(fixture)
    }
}
