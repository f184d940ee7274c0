import Formats
import Testing

@testable import Core

@Suite struct SetExpansionTests {
    static let commit = "8b3a1b1f9c6e4a0f8d3e2c1b0a99887766554433"
    static let blob = "ce013625030ba8dba906f756967f9e9ca394464a"
    static let sha256 = String(repeating: "ab", count: 32)

    static func hub(_ fill: (inout SetSource) -> Void = { _ in }) -> SetSource {
        SetSource {
            $0.repository = "org/na me"
            fill(&$0)
        }
    }

    /// Takes a document, and reads the expansion from the store.
    static func take(
        _ expansion: inout SetExpansion, _ document: String, link: String? = nil, from url: String? = nil,
        for source: SetSource
    ) throws -> [SetFile] {
        let headers = HTTPFields(link.map { [HTTPField(name: "link", value: $0)] } ?? [])
        let files = try expansion.take(
            Array(document.utf8), headers, from: url ?? expansion.next ?? "", for: source)
        #expect(SetExpansion.inOrder(expansion.bytesAtRest) == expansion)
        return files
    }

    /// An expansion whose commit is known.
    static func begun(_ source: SetSource) throws -> SetExpansion {
        var expansion = SetExpansion(of: source)
        #expect(try take(&expansion, #"{"sha":"\#(commit)"}"#, for: source) == [])
        return expansion
    }

    static func page(_ paths: [String]) -> String {
        let entries = paths.map { #"{"type":"file","path":"\#($0)","size":3,"oid":"\#(blob)"}"# }
        return "[\(entries.joined(separator: ","))]"
    }

    // MARK: Hugging Face

    @Test func `A repository is listed at the commit of its revision`() throws {
        let source = Self.hub { $0.revision = "refs/pr/1" }
        var expansion = SetExpansion(of: source)
        #expect(expansion.next == "https://huggingface.co/api/models/org/na%20me/revision/refs%2Fpr%2F1")
        #expect(expansion.commit == nil && !expansion.isComplete)
        let files = try Self.take(&expansion, #"{"id":1,"sha":"\#(Self.commit.uppercased())"}"#, for: source)
        #expect(files.isEmpty && expansion.commit == Self.commit)
        let tree = "https://huggingface.co/api/models/org/na%20me/tree/\(Self.commit)?recursive=true"
        #expect(expansion.next == tree)

        let first = """
            [{"type":"directory","path":"a","oid":"\(Self.blob)","size":0},\
            {"type":"file","path":"a/é #%.txt","oid":"\(Self.blob)","size":6,"lfs":null},\
            {"type":"file","path":"w.bin","oid":"\(Self.blob)","size":9,"xetHash":"x",\
            "lfs":{"oid":"\(Self.sha256)","size":10,"pointerSize":135}}]
            """
        let found = try Self.take(&expansion, first, link: "<\(tree)&cursor=A=>; rel=\"next\"", for: source)
        let root = "https://huggingface.co/org/na%20me/resolve/\(Self.commit)"
        #expect(
            found == [
                SetFile(
                    "a/é #%.txt", TransferRequest(url: "\(root)/a/%C3%A9%20%23%25.txt", method: "GET"),
                    SetDigest(.gitBlobSHA1, Self.blob), length: 6),
                SetFile(
                    "w.bin", TransferRequest(url: "\(root)/w.bin", method: "GET"), SetDigest(.sha256, Self.sha256),
                    length: 10),
            ])
        #expect(expansion.next == "\(tree)&cursor=A=")
        #expect(try Self.take(&expansion, Self.page(["b"]), for: source).map(\.path) == ["b"])
        #expect(expansion.isComplete && expansion.commit == Self.commit)
    }

    @Test func `Each type of repository has its own URLs, below any endpoint`() throws {
        for (type, api, prefix) in [
            (.model, "models", ""), (.dataset, "datasets", "datasets/"), (.space, "spaces", "spaces/"),
        ] as [(SetSource.RepositoryType, String, String)] {
            let source = Self.hub {
                $0.type = type
                $0.endpoint = "http://127.0.0.1:8080/hub//"
            }
            var expansion = SetExpansion(of: source)
            #expect(expansion.next == "http://127.0.0.1:8080/hub/api/\(api)/org/na%20me/revision/main")
            expansion = try Self.begun(source)
            let files = try Self.take(&expansion, Self.page(["a"]), for: source)
            let url = "http://127.0.0.1:8080/hub/\(prefix)org/na%20me/resolve/\(Self.commit)/a"
            #expect(files.map(\.request.url) == [url])
        }
        #expect(SetExpansion(of: SetSource()).isComplete)
        #expect(SetExpansion(of: Self.hub { $0.endpoint = "ftp://h/" }).isComplete)
    }

    @Test func `Globs choose the files, and a digest may name its algorithm`() throws {
        let source = Self.hub { ($0.allow, $0.ignore) = (["*.bin", "a/"], ["a/x*"]) }
        var expansion = try Self.begun(source)
        let large =
            #"{"type":"file","path":"w.bin","size":1,"oid":"x","lfs":{"oid":"sha256:\#(Self.sha256)","size":2}}"#
        let entries = Self.page(["a/b", "a/x", "c"]).dropLast()
        let files = try Self.take(&expansion, "\(entries),\(large)]", for: source)
        #expect(files.map(\.path) == ["a/b", "w.bin"])
        #expect(files.last?.expectedDigest == SetDigest(.sha256, Self.sha256))
    }

    @Test(arguments: [
        "https://hub.example:443/x?cursor=1", "HTTPS://HUB.EXAMPLE/x", "/x?cursor=1", "https://hub.example?a",
    ])
    func `The next page has the origin of the endpoint`(_ target: String) throws {
        let source = Self.hub { $0.endpoint = "https://hub.example" }
        var expansion = try Self.begun(source)
        _ = try Self.take(&expansion, "[]", link: "<\(target)>; rel=next", for: source)
        #expect(expansion.next == (target.hasPrefix("/") ? "https://hub.example\(target)" : target))
    }

    @Test(arguments: [
        "<https://evil.example/>; rel=next", "<http://hub.example/>; rel=next", "<https://hub.example:444/>; rel=next",
        "<//evil.example/>; rel=next", "<https://hub.example@evil.example/>; rel=next",
        "<https://hub.example.evil.example/>; rel=next", "<https://hub.example\\@evil.example/>; rel=next",
        "</\\evil.example/>; rel=next", "<>; rel=next", "<?cursor=1>; rel=next", "<https://hub.example/ x>; rel=next",
        "<https://hub.example/", "next",
    ])
    func `A page of another origin, or with a malformed link, ends the expansion`(_ link: String) throws {
        let source = Self.hub { $0.endpoint = "https://hub.example" }
        var expansion = try Self.begun(source)
        let before = expansion
        #expect(throws: SetExpansionError.self) { try Self.take(&expansion, "[]", link: link, for: source) }
        #expect(expansion == before)
    }

    @Test func `A link is relative to the URL of the response`() throws {
        let source = Self.hub { $0.endpoint = "https://hub.example" }
        var expansion = try Self.begun(source)
        #expect(throws: SetExpansionError.self) {
            try Self.take(&expansion, "[]", link: "</x>; rel=next", from: "https://other.example/y", for: source)
        }
        #expect(throws: SetExpansionError.self) {
            try Self.take(&expansion, "[]", link: "</x>; rel=next", from: "", for: source)
        }
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"sha":1}"#, #"{"sha":"main"}"#, #"{"sha":"\#(commit)0"}"#,
        #"{"sha":"../../../../../../../../../../../../../.."}"#,
    ])
    func `A document without a commit is refused`(_ document: String) {
        let source = Self.hub()
        var expansion = SetExpansion(of: source)
        #expect(throws: SetExpansionError.self) { try Self.take(&expansion, document, for: source) }
        #expect(expansion == SetExpansion(of: source))
    }

    @Test(arguments: [
        "", "{}", "[1]", "[{}]", page(["../a"]), page(["/a"]), page([""]), page([#"a\u0001"#]),
        #"[{"type":"file","path":"a","size":-1,"oid":"\#(blob)"}]"#, #"[{"type":"file","path":"a","size":1}]"#,
        #"[{"type":"file","path":"a","size":1.5,"oid":"\#(blob)"}]"#,
        #"[{"type":"file","path":"a","size":1,"oid":"x"}]"#,
        #"[{"type":"file","path":"a","size":1,"oid":"\#(blob)","lfs":{}}]"#,
        #"[{"type":"file","path":"a","size":1,"oid":"\#(blob)","lfs":{"oid":"\#(blob)","size":1}}]"#,
        #"[{"type":"submodule","path":"a"}]"#,
    ])
    func `A list with an unusable entry is refused`(_ document: String) throws {
        let source = Self.hub()
        var expansion = try Self.begun(source)
        let before = expansion
        #expect(throws: SetExpansionError.self) { try Self.take(&expansion, document, for: source) }
        #expect(expansion == before)
    }

    @Test func `Files and pages are limited`() throws {
        let source = Self.hub()
        func expansion(pages: Int64, files: Int64) throws -> SetExpansion {
            let text = #"{"next":"x","commit":"\#(Self.commit)","documents":\#(pages),"files":\#(files)}"#
            return try SetExpansion(atRest: Array(text.utf8))
        }
        var last = try expansion(pages: SetExpansion.mostDocuments - 1, files: SetExpansion.mostFiles - 2)
        #expect(try Self.take(&last, Self.page(["a", "b"]), for: source).count == 2)
        #expect(last.isComplete)
        var pages = try expansion(pages: SetExpansion.mostDocuments, files: 0)
        #expect(throws: SetExpansionError.self) { try Self.take(&pages, "[]", for: source) }
        var files = try expansion(pages: 2, files: SetExpansion.mostFiles - 1)
        #expect(throws: SetExpansionError.self) { try Self.take(&files, Self.page(["a", "b"]), for: source) }
    }

    // MARK: Manifests

    private func manifest(_ document: String) throws -> [SetFile] {
        let source = SetSource {
            $0.kind = .manifest
            $0.url = "https://m.example/manifest"
        }
        var expansion = SetExpansion(of: source)
        #expect(expansion.next == source.url)
        let files = try Self.take(&expansion, document, for: source)
        #expect(expansion.isComplete)
        return files
    }

    private func file(_ path: String, _ url: String, _ digest: SetDigest? = nil, length: Int64? = nil) -> SetFile {
        SetFile(path, TransferRequest(url: url, method: "GET"), digest, length: length)
    }

    @Test func `A manifest of this service is a source`() throws {
        let document = """
             {"name":"n","files":[{"path":"a/b","url":"https://h/a?b","length":3,"etag":null,\
            "digest":{"algorithm":"sha-256","value":"\(Self.sha256.uppercased())"}},\
            {"path":"c","url":"http://h/c","digest":null,"length":null},{"path":"d","url":"http://h/d"}],"more":[]}
            """
        #expect(
            try manifest(document) == [
                file("a/b", "https://h/a?b", SetDigest(.sha256, Self.sha256), length: 3), file("c", "http://h/c"),
                file("d", "http://h/d"),
            ])
    }

    @Test func `A Metalink document of many files is a source`() throws {
        let document = """
            <?xml version="1.0"?><metalink xmlns="urn:ietf:params:xml:ns:metalink">
            <file name="a/b"><size>3</size><hash type="md5">\(String(repeating: "0", count: 32))</hash>
            <hash type="sha-256"> \(Self.sha256) </hash><url priority="2">http://second.example/</url>
            <url priority="1">https://first.example/</url><url>ftp://f.example/</url></file>
            <file name="c"><hash type="sha-1">x</hash><url>http://c.example/</url></file></metalink>
            """
        #expect(
            try manifest(document) == [
                file("a/b", "https://first.example/", SetDigest(.sha256, Self.sha256), length: 3),
                file("c", "http://c.example/"),
            ])
    }

    private static func metalink(_ files: String) -> String {
        #"<metalink xmlns="urn:ietf:params:xml:ns:metalink">\#(files)</metalink>"#
    }

    @Test(arguments: [
        "", "x", "{", "{}", #"{"files":{}}"#, #"{"files":[1]}"#, #"{"files":[{"path":"a"}]}"#,
        #"{"files":[{"path":"../a","url":"http://h/"}]}"#, #"{"files":[{"path":"a","url":"file:///etc/passwd"}]}"#,
        #"{"files":[{"path":"a","url":"http://u:p@h/"}]}"#, #"{"files":[{"path":"a","url":"http://h/","length":-1}]}"#,
        #"{"files":[{"path":"a","url":"http://h/","length":"1"}]}"#,
        #"{"files":[{"path":"a","url":"http://h/","digest":{}}]}"#,
        #"{"files":[{"path":"a","url":"http://h/","digest":{"algorithm":"sha-1","value":"\#(blob)"}}]}"#,
        #"{"files":[{"path":"a","url":"http://h/","digest":{"algorithm":"md5","value":"\#(sha256)"}}]}"#,
        #"{"files":[],"files":[]}"#, "<a/>", metalink(#"<file name="a"/>"#),
        metalink("<file><url>http://h/</url></file>"), metalink(#"<file name="/a"><url>http://h/</url></file>"#),
        metalink(#"<file name="a"><url>http://h/</url><hash type="sha-256">x</hash></file>"#),
        metalink(#"<file name="a"><url priority="0">http://h/</url></file>"#),
    ])
    func `A manifest with an unusable file is refused`(_ document: String) {
        #expect(throws: SetExpansionError.self) { try manifest(document) }
    }
}
