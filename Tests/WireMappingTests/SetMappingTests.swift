import Core
import Testing
import Wire

@testable import WireMapping

@Suite struct SetMappingTests {
    private let urls = PublicURLs(base: "https://x.example")

    private func version(_ state: Core.SetVersionState) -> SetVersionRecord {
        var record = SetVersionRecord(
            id: SetVersionID(2), publicId: "sver_1", set: SetID(1), session: SessionID(1), sessionIdentifier: "s",
            name: "v1", state: state, createdAt: Records.time, revision: 3)
        record.commit = "c"
        record.metadata = ["b": "2", "a": "1"]
        (record.files.total, record.files.fetched, record.files.reused) = (4, 2, 1)
        (record.bytes.total, record.bytes.fetched, record.bytes.reused) = (40, 20, 10)
        record.failedFiles = 1
        record.failures = [Core.SetFailure(path: "a", task: 7, detail: "status 404")]
        record.manifestDigest = "ab"
        record.publishedAt = Records.time + .seconds(1)
        record.replacedAt = Records.time + .seconds(2)
        record.endedAt = Records.time + .seconds(3)
        return record
    }

    @Test func `A set shows its configuration and its kept versions`() {
        var configuration = Core.SetConfiguration()
        configuration.destination = Core.SetDestination(Wire.SetDestination(bucket: "b", prefix: "p"))
        (configuration.layout, configuration.keep, configuration.grace) = (.hfCache, 1, 2)
        configuration.cachePolicy = .useProtocolCachePolicy
        var record = SetRecord(
            id: SetID(1), app: AppID(1), name: "a:b", configuration: configuration, createdAt: Records.time, revision: 5
        )
        record.current = version(.published)
        record.kept = [version(.published)]
        let shown = FileSet(record, urls)
        #expect(shown.destination == Wire.SetDestination(bucket: "b", prefix: "p"))
        #expect(shown.layout == .hfCache && shown.keep == 1 && shown.grace == 2 && shown.revision == 5)
        #expect(shown.cachePolicy == .useProtocolCachePolicy && shown.name == "a:b")
        #expect(shown.current == shown.versions.first)
        #expect(shown.current?.manifestURL == "https://x.example/v1/sets/a:b/versions/sver_1/manifest")
        #expect(shown.current?.files == 4 && shown.current?.bytes == 40)
        #expect(shown.current?.publishedAt == "2027-01-15T08:00:01.000Z")
    }

    @Test func `A version shows its counts, its failures and its times`() {
        let shown = SetVersion(version(.failed), of: "a", urls)
        #expect(shown.version == "v1" && shown.versionId == "sver_1" && shown.name == "a")
        #expect(shown.sessionIdentifier == "s" && shown.state == .failed && shown.revision == 3)
        #expect(
            shown.files.total == 4 && shown.files.fetched == 2 && shown.files.reused == 1 && shown.files.failed == 1)
        #expect(shown.bytes.total == 40 && shown.bytes.fetched == 20 && shown.bytes.reused == 10)
        #expect(shown.failures.first?.path == "a" && shown.failures.first?.taskIdentifier == 7)
        #expect(shown.metadata.map(\.name) == ["a", "b"])
        #expect(shown.replacedAt == "2027-01-15T08:00:02.000Z" && shown.endedAt == "2027-01-15T08:00:03.000Z")
        #expect(shown.manifestURL == nil, "only a published version has a manifest")
        #expect(SetVersion(version(.published), of: "a", urls).manifestURL != nil)
    }

    @Test func `A source keeps every member, and shows the defaults of its kind`() throws {
        let hub: WireJSON = [
            "kind": "huggingface", "repository": "o/n", "type": "dataset", "revision": "v1", "allow": ["*.bin"],
            "ignore": ["x"], "endpoint": "https://h",
        ]
        let list: WireJSON = ["kind": "checksums", "url": "https://h/S", "base": "https://h/d/", "algorithm": "md5"]
        for json in [hub, list] {
            let wire = try Wire.SetSource(from: json)
            #expect(Wire.SetSource(Core.SetSource(wire)) == wire)
        }
        let shown = Wire.SetSource(Core.SetSource(.huggingface("gpt2")))
        #expect(shown.type == .model && shown.revision == "main")
        #expect(Wire.SetSource(Core.SetSource(.manifest("https://h/m"))).revision == nil)
    }

    @Test func `A file keeps every member`() throws {
        let file = SetFile(
            try SetVersionFile(from: [
                "path": "a/b", "request": ["url": "https://h/a", "headers": ["Authorization": "Bearer t"]],
                "expectedDigest": ["algorithm": "md5", "value": .string(String(repeating: "AB", count: 16))],
                "length": 3,
            ]))
        #expect(file.path == "a/b" && file.length == 3 && file.request.method == "GET")
        #expect(file.request.headers["Authorization"] == "Bearer t")
        #expect(file.expectedDigest == SetDigest(.md5, String(repeating: "ab", count: 16)))
    }

    @Test func `A manifest names Git's digests`() {
        var file = Core.SetManifestFile(
            path: "a", length: 3, digest: Core.ContentDigest(algorithm: .sha256, value: "ab"), address: "https://h/a")
        file.expectedDigest = SetDigest(.gitBlobSHA1, "cd")
        (file.entityTag, file.lastModified, file.fetchedAt) = ("\"e\"", "l", Records.time)
        let shown = Wire.SetManifestFile(file)
        #expect(shown.digest == Wire.ContentDigest(algorithm: .sha256, value: "ab"))
        #expect(shown.expectedDigest == Wire.ContentDigest(algorithm: .gitBlobSHA1, value: "cd"))
        #expect(shown.url == "https://h/a" && shown.etag == "\"e\"" && shown.lastModified == "l")
        let manifest = SetManifest(version(.published), of: "a")
        #expect(manifest.name == "a" && manifest.version == "v1" && manifest.commit == "c")
        #expect(manifest.publishedAt == "2027-01-15T08:00:01.000Z" && manifest.manifestDigest == "ab")
    }

    @Test func `The events of sets have their data`() throws {
        let envelope = EventEnvelope(sessionIdentifier: "s", urls: urls)
        func data(_ kind: EventKind, _ payload: EventRecord.Payload) throws -> WireJSON {
            let record = EventRecord(
                seq: 1, kind: kind, occurredAt: Records.time, taskIdentifier: nil, clientTaskId: nil, group: nil,
                payload: payload)
            let event = envelope.event(record)
            #expect(event.type.rawValue == kind.rawValue && event.type.isKnown)
            return try WireJSON.parse(event.data.bytes)
        }
        let publication = SetPublication {
            ($0.name, $0.version, $0.versionId, $0.files, $0.bytes, $0.cause) = ("a", "v1", "sver_1", 2, 30, .switched)
        }
        let published = try data(.didPublish, .published(publication))
        #expect(published["manifestURL"] == "https://x.example/v1/sets/a/versions/sver_1/manifest")
        #expect(published["cause"] == "switched" && published["files"] == 2 && published["bytes"] == 30)
        let failures = SetFailures {
            ($0.name, $0.version, $0.versionId) = ("a", "v1", "sver_1")
            $0.failures = [Core.SetFailure(path: nil, detail: "d")]
        }
        let failed = try data(.didFailToPublish, .failedToPublish(failures))
        #expect(failed["failures"]?[0]?["path"] == .null && failed["failures"]?[0]?["detail"] == "d")
        #expect(LaunchRule.Reasons([.setPublished, .setFailed]).names == ["setPublished", "setFailed"])
    }
}
