import Testing
import Wire

private let time = "2026-12-01T00:00:00.000Z"
private let digest = ContentDigest(algorithm: .sha256, value: String(repeating: "ab", count: 32))
private let session = #""session":"s""#
private let file = #"{"path":"a","request":{"url":"https://h/a"}}"#

private func checkRoundTrip<Shape: JSONReadable & JSONWritable & Equatable>(_ shape: Shape) throws {
    #expect(try Shape(parsing: shape.jsonBytes, .tolerant) == shape)
    // Strict reading detects a member that is written but not read.
    #expect(try Shape(parsing: shape.jsonBytes, .strict) == shape)
}

/// The positions of the faults in a request.
private func pointers<Shape: JSONReadable>(_ type: Shape.Type, _ text: String) -> [String] {
    do {
        _ = try Shape(parsing: Array(text.utf8))
        return []
    } catch {
        return error.faults.map(\.pointer).sorted()
    }
}

@Suite struct SetShapeTests {
    @Test func `Sets and versions survive a round trip`() throws {
        let published = PublishedVersion {
            ($0.version, $0.versionId, $0.files, $0.bytes) = ("1", "sver_1", 2, 3)
            ($0.manifestDigest, $0.manifestURL) = ("ab", "http://h/m")
            ($0.publishedAt, $0.replacedAt) = (time, time)
        }
        try checkRoundTrip(
            FileSet {
                ($0.name, $0.createdAt, $0.revision) = ("s", time, 2)
                $0.destination = SetDestination(root: "r", path: "p")
                ($0.layout, $0.keep, $0.grace, $0.cachePolicy) = (.hfCache, 0, 0, .useProtocolCachePolicy)
                ($0.current, $0.versions) = (published, [published])
            })
        try checkRoundTrip(FileSet { $0.destination = SetDestination(bucket: "b", prefix: "p") })
        let source = SetSource {
            ($0.kind, $0.repository, $0.type, $0.revision) = (.huggingface, "o/n", .dataset, "v1")
            ($0.allow, $0.ignore, $0.endpoint) = (["*.bin"], ["*.md"], "https://h")
        }
        try checkRoundTrip(
            SetVersion {
                ($0.version, $0.versionId, $0.name, $0.sessionIdentifier) = ("1", "sver_1", "s", "x")
                ($0.state, $0.source, $0.commit, $0.manifestDigest) = (.failed, source, "c", "ab")
                ($0.files.total, $0.files.fetched, $0.files.reused, $0.files.failed) = (4, 1, 1, 2)
                ($0.bytes.total, $0.bytes.fetched, $0.bytes.reused) = (4, 1, 1)
                $0.failures = [
                    SetFailure { ($0.path, $0.taskIdentifier, $0.detail) = ("a", 3, "d") },
                    SetFailure { $0.detail = "d" },
                ]
                ($0.manifestURL, $0.metadata) = ("http://h/m", ["k": "v"])
                ($0.createdAt, $0.publishedAt, $0.replacedAt, $0.endedAt) = (time, time, time, time)
            })
        try checkRoundTrip(
            SetManifest {
                ($0.name, $0.version, $0.versionId, $0.manifestDigest, $0.commit) = ("s", "1", "sver_1", "ab", "c")
                ($0.createdAt, $0.publishedAt) = (time, time)
                $0.files = [
                    SetManifestFile {
                        ($0.path, $0.url, $0.length, $0.digest, $0.expectedDigest) = (
                            "a", "http://h/a", 1, digest, digest
                        )
                        ($0.etag, $0.lastModified, $0.fetchedAt) = ("\"a\"", "Tue, 01 Dec 2026 00:00:00 GMT", time)
                    }
                ]
            })
    }

    @Test func `Requests about sets survive a round trip`() throws {
        try checkRoundTrip(FileSetPut())
        try checkRoundTrip(
            FileSetPut {
                $0.destination = .clear
                ($0.layout, $0.keep, $0.grace, $0.cachePolicy) = (.versions, 1, 2, .returnCacheDataElseLoad)
            })
        try checkRoundTrip(FileSetPut { $0.destination = .set(SetDestination(root: "r", path: "a/b")) })
        try checkRoundTrip(SetSwitch(version: "sver_1"))
        var file = SetVersionFile("a/b", TransferRequest(url: "https://h/a"), digest)
        file.length = 3
        var creation = SetVersionCreation(session: "s", files: [file])
        (creation.version, creation.metadata) = ("1", ["k": "v"])
        try checkRoundTrip(creation)
        for source: SetSource in [.huggingface("gpt2"), .checksums("https://h/SHA256SUMS"), .manifest("https://h/m")] {
            try checkRoundTrip(SetVersionCreation(session: "s", source: source))
        }
    }

    @Test func `A destination is a folder or a prefix, never a part of both`() {
        func faults(_ text: String) -> [String] { pointers(FileSetPut.self, #"{"destination":\#(text)}"#) }
        #expect(faults(#"{"root":"r","path":"a/b"}"#) == [])
        #expect(faults(#"{"bucket":"b","prefix":"a/b"}"#) == [])
        #expect(faults("{}") == ["/destination"])
        #expect(faults(#"{"root":"r"}"#) == ["/destination/path"])
        #expect(faults(#"{"bucket":"b"}"#) == ["/destination/prefix"])
        #expect(faults(#"{"root":"r","path":"a","bucket":"b"}"#) == ["/destination"])
        #expect(faults(#"{"root":"r","path":"a/../b"}"#) == ["/destination/path"])
        #expect(faults(#"{"bucket":"b","prefix":"a/"}"#) == ["/destination/prefix"])
        #expect(pointers(FileSetPut.self, #"{"keep":-1,"grace":-1,"layout":"tree"}"#).count == 3)
    }

    @Test func `A version has files or a source`() {
        func faults(_ members: String) -> [String] {
            pointers(SetVersionCreation.self, "{\(session),\(members)}")
        }
        let source = #""source":{"kind":"manifest","url":"https://h/m"}"#
        #expect(faults(#""files":[\#(file)]"#) == [] && faults(source) == [])
        #expect(faults(#""version":"1""#) == [""])
        #expect(faults(#""files":[\#(file)],\#(source)"#) == ["/source"])
        #expect(faults(#""files":[]"#) == ["/files"])
        #expect(faults(#""files":null"#) == ["/files"])
    }

    @Test(arguments: ["", ".", ".a", "a/b", "sver_1"])
    func `The name of a version is the name of a folder, and not one of the service's own`(name: String) {
        let text = #"{\#(session),"version":"\#(name)","files":[\#(file)]}"#
        #expect(pointers(SetVersionCreation.self, text) == ["/version"])
        #expect(pointers(SetSwitch.self, #"{"version":"sver_1"}"#) == [])
    }

    @Test func `A file has a relative path and a request by GET`() {
        func faults(_ text: String) -> [String] { pointers(SetVersionFile.self, text) }
        for path in ["", "/a", "a/", "a//b", "a/./b", "../a"] {
            #expect(faults(#"{"path":"\#(path)","request":{"url":"https://h/a"}}"#) == ["/path"], "\(path)")
        }
        func requests(_ members: String) -> [String] {
            faults(#"{"path":"a","request":{"url":"https://h/a",\#(members)}}"#)
        }
        #expect(requests(#""method":"GET""#) == [])
        #expect(requests(#""method":"POST","body":{"text":"x"}"#) == ["/request/body", "/request/method"])
        #expect(requests(#""headers":{"Range":"bytes=0-1"}"#) == ["/request/headers/Range"])
        #expect(faults(#"{"path":"a","request":{"url":"ftp://h/a"}}"#) == ["/request/url"])
        #expect(faults(#"{"path":"a","request":{"bucket":"b","key":"k"},"length":-1}"#) == ["/length"])
        let digest = #""expectedDigest":{"algorithm":"sha-256","value":"ab"}"#
        #expect(faults(#"{"path":"a","request":{"url":"https://h/a"},\#(digest)}"#) == ["/expectedDigest/value"])
    }

    @Test func `A source has the members of its kind`() {
        func faults(_ text: String) -> [String] { pointers(SetSource.self, text) }
        #expect(faults(#"{"kind":"huggingface"}"#) == ["/repository"])
        #expect(
            faults(#"{"kind":"huggingface","repository":"a/b","url":"https://h","base":"https://h"}"#) == [
                "/base", "/url",
            ])
        #expect(faults(#"{"kind":"checksums","url":"https://h/S","algorithm":"md5","base":"https://h/"}"#) == [])
        #expect(faults(#"{"kind":"checksums"}"#) == ["/url"])
        #expect(
            faults(#"{"kind":"manifest","url":"https://h/m","allow":["a"],"revision":"x"}"#) == ["/allow", "/revision"])
        #expect(faults(#"{"kind":"torrent","url":"https://h/m"}"#) == ["/kind"])
    }

    @Test func `Repositories, revisions and globs are checked`() {
        func faults(_ name: String, _ value: String) -> [String] {
            let repository = name == "repository" ? "" : #""repository":"a/b","#
            return pointers(SetSource.self, #"{"kind":"huggingface",\#(repository)"\#(name)":\#(value)}"#)
        }
        for name in ["gpt2", "a/b", "A-1/b_c.d"] { #expect(faults("repository", "\"\(name)\"") == [], "\(name)") }
        for name in ["", "/", "a/", "a/b/c", "a b", "-a/b", "a/b.", "a--b/c", "a/..", "a/b.git"] {
            #expect(faults("repository", "\"\(name)\"") == ["/repository"], "\(name)")
        }
        #expect(faults("revision", #""refs/pr/1""#) == [])
        for name in ["", "../x", "a//b"] { #expect(faults("revision", "\"\(name)\"") == ["/revision"], "\(name)") }
        for glob in ["*", "a/**/b?", "[abc]x", "[!a]", "[]]", "[!]]"] {
            #expect(faults("allow", "[\"\(glob)\"]") == [], "\(glob)")
        }
        for glob in ["", "[", "a[", "[]", "[!]", "[a][b"] {
            #expect(faults("ignore", "[\"\(glob)\"]") == ["/ignore/0"], "\(glob)")
        }
    }

    @Test func `The events of sets are printed with their main facts`() {
        let published = EventData.DidPublish {
            ($0.name, $0.version, $0.files, $0.bytes, $0.cause) = ("s", "1", 2, 30, .switched)
        }
        let event = Event { ($0.seq, $0.type, $0.data) = (3, .setDidPublish, JSONText(published)) }
        #expect("\(event)" == "#3 set.didPublish: s 1: 2 files, 30 bytes (switched)")
        let failed = EventData.DidFail {
            ($0.name, $0.version) = ("s", "1")
            $0.failures = [SetFailure { ($0.path, $0.detail) = ("a", "status 404") }]
        }
        let failure = Event { ($0.seq, $0.type, $0.data) = (4, .setDidFail, JSONText(failed)) }
        #expect("\(failure)" == "#4 set.didFail: s 1: a: status 404")
    }
}
