import Formats
import Testing

@testable import Core

/// The results are those of Python's `fnmatch.fnmatchcase`.
@Suite struct GlobTests {
    @Test(
        arguments: [
            ("*.json", "config.json", true), ("*.json", "a/b/config.json", true), ("*.json", "config.jsonl", false),
            ("a/*", "a/b/c", true), ("a/", "a/b/c", true), ("a/", "a", false), ("*/", "a/b", true), ("", "", true),
            ("", "a", false), ("*", "", true), ("**", "a/b", true), ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXcXb", false), ("?", "a", true), ("?", "\u{1F600}", true), ("?", "", false), ("?", "ab", false),
            ("\u{E9}", "e\u{301}", false), ("[abc]", "b", true), ("[abc]", "d", false), ("[!abc]", "d", true),
            ("[!abc]", "a", false), ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[!a-c]x", "dx", true),
            ("[]]", "]", true), ("[!]]", "]", false), ("[!]]", "a", true), ("[a-]", "-", true), ("[-a]", "-", true),
            ("[a-c-e]", "-", true), ("[a-c-e]", "d", false), ("[z-a]", "m", false), ("[!z-a]", "m", true),
            ("[^a]", "^", true), ("[^a]", "b", false), ("[", "[", true), ("[a", "[a", true), ("[]", "[]", true),
            ("[!]", "[!]", true), ("a[*]b", "a*b", true), ("a[*]b", "aXb", false), ("\\a", "\\a", true),
            ("model-0000[1-3]-of-*.safetensors", "model-00002-of-00003.safetensors", true),
        ] as [(String, String, Bool)])
    func `A pattern matches as in Python`(_ pattern: String, _ path: String, _ matches: Bool) {
        #expect(Glob(pattern).matches(path) == matches)
    }

    @Test func `Many stars take no more than the product of the lengths, and brackets linear time`() {
        let path = String(repeating: "a", count: 4000)
        #expect(!Glob(String(repeating: "*a", count: 40) + "*b").matches(path))
        #expect(Glob(String(repeating: "*", count: 10_000) + "a").matches(path))
        #expect(!Glob(String(repeating: "[", count: 100_000)).matches(path))
    }

    private func admitted(_ paths: [String], _ fill: (inout SetSource) -> Void) throws -> [String] {
        var filter = GlobFilter(SetSource(fill))
        return try paths.filter { try filter.admits($0) }
    }

    @Test func `Files are allowed by any glob, then ignored by any`() throws {
        let paths = ["a.bin", "a.json", "b/a.json", "c.txt"]
        #expect(try admitted(paths) { _ in } == paths)
        #expect(try admitted(paths) { $0.allow = ["*.json", "*.txt"] } == ["a.json", "b/a.json", "c.txt"])
        #expect(try admitted(paths) { $0.ignore = ["b/"] } == ["a.bin", "a.json", "c.txt"])
        #expect(
            try admitted(paths) { ($0.allow, $0.ignore) = (["*.json", "*.txt"], ["b/*", "c*"]) } == ["a.json"])
    }

    @Test func `Globs that would take minutes for one list are refused`() throws {
        let path = String(repeating: "a", count: 4000)
        #expect(throws: SetExpansionError.self) {
            try admitted([path]) { $0.allow = [String(repeating: "b", count: 250_001)] }
        }
        #expect(try admitted([path]) { $0.allow = [String(repeating: "b", count: 250_000)] } == [])
    }
}
