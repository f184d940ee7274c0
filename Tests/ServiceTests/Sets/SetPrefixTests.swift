import Base
import Buckets
import Core
import TestSupport
import Testing

@testable import Service

/// Versions of sets in a bucket.
struct SetPrefixTests {
    private let store: ObjectStore
    private let client: BucketClient
    private let stage: PublishedStage

    init() throws {
        store = try ObjectStore()
        client = try BucketClient.stage(store)
        stage = try PublishedStage(contents: BucketClient.stage(store, prefix: "own/"))
    }

    private func set(_ prefix: String = "sets/x") -> SetPrefix {
        SetPrefix(client, prefix: prefix, sources: stage.sources)
    }

    private var keys: [String] { store.objects.keys.sorted() }

    private func object(_ path: String, of length: Int, as key: String) -> PublishedFile {
        let bytes = Content.bytes(seed: 5, length: length)
        store.put("own/\(key)", bytes)
        var file = stage.file(path, bytes)
        file.storage = .objects([StoredObject(key: key, length: Int64(length))])
        return file
    }

    @Test func `Files become objects once, whatever their storage`() async throws {
        let file = stage.stored("deep/é f", Content.bytes(seed: 1, length: 70_000), as: "1")
        let files = [file, stage.file("s", "small"), stage.file("empty", "")]
        for _ in 0..<2 { try await set().place(files, of: ".v") }
        #expect(keys == ["deep/é f", "empty", "s"].map { "p/sets/x/versions/%2Ev/\($0)" })
        #expect(set().key("s", of: ".v") == "sets/x/versions/%2Ev/s" && set("").key("s", of: "v") == "versions/v/s")
        #expect(store.objects["p/sets/x/versions/%2Ev/deep/é f"]?.bytes == Content.bytes(seed: 1, length: 70_000))
        #expect(store.requests(.put).count == 3)
        // The objects of another writer, or with other bytes, are replaced.
        store.put("p/sets/x/versions/%2Ev/s", Array("small".utf8))
        try await set().place(files, of: ".v")
        #expect(store.requests(.put).count == 4)
    }

    @Test func `A long file is written in parts, again after each fault`() async throws {
        let length = (8 << 20) + 3
        let file = stage.stored("f", Content.bytes(seed: 1, length: length), as: "1")
        store.beginUpload("p/sets/x/versions/v/f")
        store.next(.part, [.well, .refuse(403, "AccessDenied")])
        await #expect(throws: BucketFault.self) { try await set().place([file], of: "v") }
        #expect(keys.isEmpty && store.uploads == 0)
        store.next(.complete, [.loseAnswer])
        try await set().place([file], of: "v")
        #expect(store.objects["p/sets/x/versions/v/f"]?.bytes == Content.bytes(seed: 1, length: length))
        #expect(store.uploads == 0)
    }

    @Test func `An object that lost bytes is not accepted as the file`() async throws {
        store.next(.put, [.halve])
        await #expect(throws: BucketFault.self) { try await set().place([stage.file("f", "bytes")], of: "v") }
        try await set().place([stage.file("f", "bytes")], of: "v")
        #expect(store.objects["p/sets/x/versions/v/f"]?.bytes == Array("bytes".utf8))
    }

    @Test func `An unchanged object is copied by the store`() async throws {
        var file = stage.file("f", "bytes")
        try await set().place([file], of: "v1")
        file.earlier = set().key("f", of: "v1")
        // Without the bytes here.
        file.storage = .bytes([])
        try await set().place([file], of: "v2")
        #expect(store.requests(.copy).count == 1 && store.requests(.put).count == 1)
        #expect(store.objects["p/sets/x/versions/v2/f"]?.bytes == Array("bytes".utf8))
        // An object with other bytes is not.
        var other = stage.file("f", "other")
        other.earlier = set().key("f", of: "v1")
        try await set().place([other], of: "v3")
        #expect(store.requests(.copy).count == 1)
        #expect(store.objects["p/sets/x/versions/v3/f"]?.bytes == Array("other".utf8))
    }

    @Test func `A content is copied from its bucket beside, and sent if the store refuses`() async throws {
        try await set().place([object("a", of: 70_000, as: "k1")], of: "v")
        #expect(store.requests(.copy).map(\.key) == ["p/sets/x/versions/v/a"] && store.requests(.put).isEmpty)
        let faults = [ObjectStore.Turn.refuse(403, "AccessDenied"), .errorInSuccess("NotImplemented"), .empty]
        for (count, fault) in faults.enumerated() {
            store.next(.copy, [fault])
            let set = set()
            try await set.place([object("b", of: 70_001, as: "k2")], of: "\(count)")
            // A copy that was refused once is not requested again.
            try await set.place([object("c", of: 70_002, as: "k3")], of: "\(count)")
            #expect(store.requests(.copy).count == 2 + count, "\(fault)")
            #expect(store.requests(.put).count == 2 + 2 * count, "\(fault)")
            #expect(store.objects["p/sets/x/versions/\(count)/b"]?.bytes == Content.bytes(seed: 5, length: 70_001))
        }
        store.next(.copy, [.refuse(503, "SlowDown")])
        try await set().place([object("b", of: 70_001, as: "k2")], of: "slow")
        #expect(store.requests(.put).count == 2 * faults.count)
    }

    @Test func `A copy of a long object is made of parts`() async throws {
        store.put("own/k", Content.bytes(seed: 5, length: 1000))
        let bucket = try BucketClient.stage(store, prefix: "own/").bucket
        let source = BucketClient.CopySource(bucket, "k", entityTag: store.objects["own/k"]?.tag, length: 1000)
        try await client.copy(source, to: "t", ObjectTerms(mark: "m"), longest: 300)
        #expect(store.objects["p/t"]?.bytes == Content.bytes(seed: 5, length: 1000))
        #expect(store.requests(.copy).count == 4)
        let outdated = BucketClient.CopySource(bucket, "k", entityTag: "\"other\"", length: 1000)
        await #expect(throws: BucketFault.self) {
            try await client.copy(outdated, to: "t", ObjectTerms(mark: "m"), longest: 300)
        }
        #expect(store.uploads == 0)
    }

    @Test func `The pointer replaces the object that was read before`() async throws {
        for text in ["1", "2"] { try await set().point(Array(text.utf8)) }
        let puts = store.requests(.put)
        #expect(puts[0].fields["If-None-Match"] == "*" && puts[1].fields["If-Match"] != nil)
        // Another writer comes between.
        let gate = Gate()
        store.next(.put, [.hold(gate)])
        async let pointed: Void = set().point(Array("3".utf8))
        try await eventually("the request is held") { gate.waiting == 1 }
        store.put("p/sets/x/current.json", Array("theirs".utf8))
        gate.open()
        try await pointed
        #expect(store.objects["p/sets/x/current.json"]?.bytes == Array("3".utf8))
        #expect(store.requests(.put).count == 4)
        store.next(.put, [.loseAnswer])
        try await set().point(Array("4".utf8))
        #expect(store.objects["p/sets/x/current.json"]?.bytes == Array("4".utf8))
    }

    @Test func `A store without conditions gets the pointer without them`() async throws {
        store.ignoreConditions()
        for text in ["1", "2"] { try await set().point(Array(text.utf8)) }
        #expect(store.objects["p/sets/x/current.json"]?.bytes == Array("2".utf8))
        #expect(store.requests(.put).allSatisfy { $0.fields["If-Match"] == nil && $0.fields["If-None-Match"] == nil })
    }

    private func publish(_ version: String) async throws {
        try await set().place([stage.file("a/f", version), stage.file("g", "g"), stage.file("h", "h")], of: version)
        try await set().write(manifest: Array("{}".utf8), of: version)
        try await set().point(Array(version.utf8))
    }

    private func versions() -> [String] {
        keys.filter { $0.hasPrefix("p/sets/x/") }.map { String($0.dropFirst("p/sets/x/".count)) }
    }

    private func all(_ version: String) -> [String] {
        ["manifests/\(version).json"] + ["a/f", "g", "h"].map { "versions/\(version)/\($0)" }
    }

    @Test func `A version is removed manifest first, and after a fault again`() async throws {
        for version in ["v", "v.1", "v0"] { try await publish(version) }
        store.put("p/sets/y", [1])
        store.beginUpload("p/sets/x/versions/v/long")
        store.beginUpload("p/sets/x/versions/v0/long")
        store.next(.delete, [.well, .well, .refuse(403, "AccessDenied")])
        await #expect(throws: BucketFault.self) { try await set().remove("v") }
        for _ in 0..<2 { try await set().remove("v") }
        #expect(store.requests(.delete).first?.key == "p/sets/x/manifests/v.json")
        #expect(versions() == (["current.json"] + all("v.1") + all("v0")).sorted())
        #expect(store.uploads == 1 && keys.contains("p/sets/y"))
    }

    @Test func `Unknown versions are swept, with a deleted set all of them`() async throws {
        for version in ["v", "v.1", "v0", "w"] { try await publish(version) }
        // Without objects, and in the order of keys right after the manifest of "v".
        try await set().write(manifest: [1], of: "v.json-1")
        try await set().place([stage.file("f", "f")], of: "unfinished")
        store.beginUpload("p/sets/x/versions/v0/long")
        store.beginUpload("p/sets/x/versions/x/long")
        for _ in 0..<2 { try await set().sweep(keeping: ["v0", "v", "none"]) }
        #expect(versions() == (["current.json"] + all("v") + all("v0")).sorted())
        #expect(store.uploads == 1)
        for _ in 0..<2 { try await set().removeAll(keeping: "v0") }
        #expect(versions() == (["current.json"] + all("v0")).sorted())
        store.put("p/sets/xy", [1])
        for _ in 0..<2 { try await set().removeAll(keeping: nil) }
        #expect(keys == ["p/sets/xy"] && store.uploads == 0)
    }
}
