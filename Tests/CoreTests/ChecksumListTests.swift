import Formats
import Testing

@testable import Core

@Suite struct ChecksumListTests {
    private static let md5 = String(repeating: "0a", count: 16)
    private static let sha256 = String(repeating: "1b", count: 32)
    private static let sha512 = String(repeating: "2c", count: 64)
    private static let url = "https://h/dir/SUMS?x#y"

    private func files(
        _ document: String, at url: String = url, base: String? = nil, _ algorithm: SetDigestAlgorithm? = nil
    ) throws -> [SetFile] {
        let source = SetSource {
            $0.kind = .checksums
            ($0.url, $0.base, $0.algorithm) = (url, base, algorithm)
        }
        var expansion = SetExpansion(of: source)
        let files = try SetExpansionTests.take(&expansion, document, for: source)
        #expect(expansion.isComplete)
        return files
    }

    private func file(_ path: String, _ url: String, _ digest: SetDigest) -> SetFile {
        SetFile(path, TransferRequest(url: url, method: "GET"), digest)
    }

    @Test(
        arguments: [
            ("\(sha256)  a", "a"), ("\(sha256) *a", "a"), ("\(sha256) a", "a"), ("\(sha256)\ta", "a"),
            ("\(sha256.uppercased())  ./a", "a"), ("  \(sha256)  a b ", "a b "), ("\(sha256)   a", " a"),
            ("\\\(sha256)  a\\\\b", "a\\b"), ("\(sha256)  a\\nb", "a\\nb"), ("SHA256 (a) = \(sha256)", "a"),
            ("SHA256 (a (1)) = \(sha256)", "a (1)"), ("SHA256(a)= \(sha256)", "a"), ("SHA2-256(a)= \(sha256)", "a"),
            ("\\SHA256 (a\\\\b) = \(sha256)", "a\\b"), ("\(sha256)  d/é", "d/é"),
        ] as [(String, String)])
    func `A line of each form is read`(_ line: String, _ path: String) throws {
        let document = "# comment\n\n \t\r\n\(line)\r\n"
        let found = try files(document)
        #expect(found.map(\.path) == [path])
        #expect(found.map(\.expectedDigest) == [SetDigest(.sha256, Self.sha256)])
    }

    @Test func `The algorithm is that of the source, of the list's name, or of the digest's length`() throws {
        func algorithm(_ digest: String, at name: String, _ own: SetDigestAlgorithm? = nil) -> SetDigestAlgorithm? {
            try? files("\(digest)  a", at: "https://h/\(name)", own).first?.expectedDigest?.algorithm
        }
        for (name, digest, expected) in [
            ("SHA256SUMS", Self.sha256, .sha256), ("a-1.2.sha512", Self.sha512, .sha512),
            ("sha-512sum.txt", Self.sha512, .sha512), ("MD5SUMS", Self.md5, .md5), ("SUMS", Self.md5, .md5),
            ("SUMS", Self.sha256, .sha256), ("SUMS", Self.sha512, .sha512), ("MD5SUMS", Self.sha256, nil),
            ("SHA3-256SUMS", Self.sha256, nil), ("B2SUMS", Self.sha512, nil), ("blake.sha256", Self.sha256, .sha256),
            ("SUMS", String(repeating: "0", count: 40), nil),
        ] as [(String, String, SetDigestAlgorithm?)] {
            #expect(algorithm(digest, at: name) == expected, "\(name)")
        }
        #expect(algorithm(Self.sha256, at: "B2SUMS", .sha256) == .sha256)
        #expect(algorithm(Self.sha256, at: "SUMS", .sha512) == nil)
    }

    @Test func `Of several digests with tags, those of the source's algorithm count`() throws {
        let document = "MD5 (a) = \(Self.md5)\nRMD160 (a) = x\nSHA512 (a) = \(Self.sha512)"
        #expect(try files(document, .sha512).map(\.expectedDigest) == [SetDigest(.sha512, Self.sha512)])
        #expect(throws: SetExpansionError.self) { try files(document) }
    }

    @Test(
        arguments: [
            ("https://h/dir/SUMS?x#y", nil, "https://h/dir/a%20b/%C3%A9%3F"),
            ("https://h", nil, "https://h/a%20b/%C3%A9%3F"), ("https://h?/x", nil, "https://h/a%20b/%C3%A9%3F"),
            ("https://h/SUMS", "http://i:1/base", "http://i:1/base/a%20b/%C3%A9%3F"),
            ("https://h/SUMS", "http://i:1/base/?q", "http://i:1/base/a%20b/%C3%A9%3F"),
            ("https://h/SUMS", "http://i", "http://i/a%20b/%C3%A9%3F"),
        ] as [(String, String?, String)])
    func `Paths are relative to the list, or below the base`(_ url: String, _ base: String?, _ expected: String) throws
    {
        let found = try files("\(Self.sha256)  a b/é?", at: url, base: base)
        #expect(found == [file("a b/é?", expected, SetDigest(.sha256, Self.sha256))])
    }

    @Test func `The list is no file of the set`() throws {
        let document = "\(Self.sha256)  SUMS\n\(Self.sha256)  a/SUMS"
        #expect(try files(document).map(\.path) == ["a/SUMS"])
        #expect(try files(document, base: "https://h/other/").map(\.path) == ["SUMS", "a/SUMS"])
    }

    @Test(arguments: [
        "hello", "\(sha256)", "\(sha256) ", "\(sha256)  ../a", "\(sha256)  /a", "\\\(sha256)  a\\nb",
        "\\\(sha256)  a\\x",
        "\\\(sha256)  a\\", "\(sha256.dropLast())  a", "SHA256 (a = \(sha256)", "SHA256 a) = \(sha256)",
        "(a) = \(sha256)",
        "SHA256 )a( = \(sha256)", "SHA256 (a) \(sha256)", "SHA1 (a) = \(sha256)", "SHA256 (a) = \(md5)", "()", ")(",
        "\\",
        "<!DOCTYPE html>", "{}",
    ])
    func `Another line is refused`(_ line: String) {
        #expect(throws: SetExpansionError.self) { try files("\(Self.sha256)  first\n\(line)\n") }
    }

    @Test func `A name that is not UTF-8, a list without a URL and a long list are refused`() throws {
        let source = SetSource {
            $0.kind = .checksums
            $0.url = Self.url
        }
        var expansion = SetExpansion(of: source)
        let line = Array("\(Self.md5)  a\n".utf8)
        #expect(throws: SetExpansionError.self) {
            try expansion.take(line.dropLast() + [0xFF], HTTPFields(), from: "", for: source)
        }
        let blank = SetSource { $0.kind = .checksums }
        #expect(SetExpansion(of: blank).isComplete)
        #expect(throws: SetExpansionError.self) { try expansion.take(line, HTTPFields(), from: "", for: blank) }
        #expect(throws: SetExpansionError.self) {
            try expansion.take(
                [[UInt8]](repeating: line, count: 100_001).flatMap(\.self), HTTPFields(), from: "", for: source)
        }
    }
}
