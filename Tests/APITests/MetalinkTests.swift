import Formats
import Glibc
import Testing
import Wire

@testable import API

private func document(_ file: String, root: String = #"metalink xmlns="urn:ietf:params:xml:ns:metalink""#) -> [UInt8] {
    Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<\(root)><file name=\"a\">\(file)</file></metalink>".utf8)
}

private let sha256 = String(repeating: "ab", count: 32)

struct MetalinkTests {
    @Test
    func `A document becomes one download with mirrors, digest and pieces`() throws {
        let creation = try Metalink.creation(
            document(
                """
                <!-- made by hand --><size>14471447</size><identity>Example</identity>
                <hash type="md5">\(String(repeating: "0", count: 32))</hash>
                <hash type="sha-256">\(sha256.uppercased())</hash>
                <pieces length="1048576" type="sha-1"><hash>x</hash></pieces>
                <pieces length="262144" type="sha-256"><hash>\(sha256)</hash><hash> \(sha256) </hash></pieces>
                <url location="de" priority="3">http://c.example/a</url>
                <url priority="1">https://a.example/?x=1&amp;y=2</url>
                <url>http://d.example/a</url>
                <url priority="2"><![CDATA[http://b.example/a]]></url>
                <url priority="1">ftp://f.example/a</url>
                <metaurl mediatype="torrent">http://t.example/t</metaurl>
                """))
        #expect(creation.kind == .download)
        #expect(creation.request?.url == "https://a.example/?x=1&y=2")
        #expect(creation.mirrors == ["http://b.example/a", "http://c.example/a", "http://d.example/a"])
        #expect(creation.expectedDigest == ContentDigest(algorithm: .sha256, value: sha256))
        #expect(creation.pieces == Pieces(length: 262_144, algorithm: .sha256, values: [sha256, sha256]))
        #expect(creation.countOfBytesClientExpectsToReceive == 14_471_447)
        #expect(creation.segments == .auto)
    }

    @Test
    func `Prefixes are equivalent to a default namespace`() throws {
        let bytes = Array(
            """
            <m:metalink xmlns:m='urn:ietf:params:xml:ns:metalink'><m:file name="a"><m:url>http://a.example/</m:url>\
            <url>http://not.example/</url></m:file></m:metalink>
            """.utf8)
        let creation = try Metalink.creation(bytes)
        #expect(creation.request?.url == "http://a.example/")
        #expect(creation.mirrors.isEmpty)
    }

    @Test(arguments: [
        "", "<a>", "<a></b>", "<a b=c/>", "<a b='1' b='2'/>", "<a>&unknown;</a>", "<a>&#0;</a>", "<a/><b/>", "x<a/>",
        "<!DOCTYPE a [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><a>&e;</a>", "<p:a/>", "<a", "<a><!-- ", "<a>\u{1}</a>",
        "<?xml version='1.0' encoding='ISO-8859-1'?><a/>", "<a>&#xD800;</a>", "<a b='<'/>", "<a>&#+65;</a>",
        "<a>&#x+41;</a>", "<a:b:c xmlns:a='d'/>", "<a:1 xmlns:a='d'/>", "<:a/>",
    ])
    func `A document that is not well-formed or has a document type is refused`(text: String) {
        #expect(throws: XMLError.self) { try XMLElement(parsing: Array(text.utf8)) }
        #expect(throws: Metalink.Refused.self) { try Metalink.creation(Array(text.utf8)) }
    }

    @Test
    func `Invalid UTF-8 and too many levels are refused`() {
        #expect(throws: XMLError.self) { try XMLElement(parsing: [0x3C, 0x61, 0xFF, 0x2F, 0x3E]) }
        let deep = String(repeating: "<a>", count: 100) + String(repeating: "</a>", count: 100)
        #expect(throws: XMLError.self) { try XMLElement(parsing: Array(deep.utf8)) }
    }

    @Test
    func `An element has at most 64 attributes, and as many namespaces are in scope`() throws {
        func parse(_ text: String) throws(XMLError) -> XMLElement { try XMLElement(parsing: Array(text.utf8)) }
        func names(_ prefix: String, _ count: Int) -> String {
            (0..<count).map { " \(prefix)\($0)='u'" }.joined()
        }
        #expect(try parse("<a\(names("b", 64))/>").attributes.count == 64)
        #expect(throws: XMLError.self) { try parse("<a\(names("b", 65))/>") }
        // Two declarations are predefined.
        #expect(try parse("<a\(names("xmlns:b", 62))><b0:c/></a>").children.first?.namespace == "u")
        #expect(throws: XMLError.self) { try parse("<a\(names("xmlns:b", 40))><a\(names("xmlns:c", 40))/></a>") }
        #expect(throws: XMLError.self) { try parse("<?xml version='1.0'\(String(repeating: " ", count: 300))?><a/>") }
    }

    @Test
    func `The scope of a declaration ends with its element`() throws {
        let text = "<a xmlns='1'><b xmlns='2' xmlns:p='3'><p:c/></b><d/></a>"
        let root = try XMLElement(parsing: Array(text.utf8))
        #expect(root.children.map(\.namespace) == ["2", "1"])
        #expect(root.children[0].children[0].namespace == "3")
        #expect(throws: XMLError.self) { try XMLElement(parsing: Array("<a><b xmlns:p='3'/><p:c/></a>".utf8)) }
    }

    /// Parts of documents that could take more than linear time.
    private static let patterns = [
        " b#='c'", "<e xmlns='u' xmlns:p#='u'/>", "<e>#</e>", "&amp;&#x41;", "<![CDATA[]]>", "<!---->x", "<?p ?>", "]",
        "<url>http://#.example/</url>", "<hash type='x'>#</hash>", "<pieces type='x'/>",
    ]

    @Test(arguments: patterns)
    func `Parsing time is linear in the length`(pattern: String) throws {
        func seconds(_ length: Int) -> Double {
            var (text, number) = ("", 0)
            while text.utf8.count < length {
                text += pattern.replacing("#", with: "\(number)")
                number += 1
            }
            let isAttribute = pattern.hasPrefix(" ")
            let bytes = document(isAttribute ? "<e\(text)/>" : text)
            let start = threadSeconds()
            _ = try? Metalink.creation(bytes)
            return threadSeconds() - start
        }
        let least = (0..<3).map { _ in seconds(40_000) }.min() ?? 0
        #expect(seconds(160_000) < 10 * least + 0.05)
    }

    /// The CPU time of this thread.
    private func threadSeconds() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    @Test
    func `A document of another kind, without a usable URL or of many files is refused`() {
        let url = "<url>http://a.example/</url>"
        for bytes in [
            document(url, root: #"metalink xmlns="http://www.metalinker.org/""#), document(""),
            document("<url>ftp://a.example/</url>"), document(url + "</file><file>" + url),
            document(url + "<size>x</size>"), document("<url priority='0'>http://a.example/</url>"),
            document(url + "<pieces type='sha-256'><hash>a</hash></pieces>"),
        ] {
            #expect(throws: Metalink.Refused.self) { try Metalink.creation(bytes) }
        }
    }

    @Test
    func `Invalid values are reported with their positions`() throws {
        let error = try #require(throws: JSONError.self) {
            try Metalink.creation(
                document("<url>http://a.example/</url><url>http://u@b.example/</url><hash type='sha-256'>ab</hash>"))
        }
        #expect(error.faults.map(\.pointer).sorted() == ["/expectedDigest/value", "/mirrors/0"])
    }
}
