import Formats
import Testing

/// White space around texts of header fields and documents.
struct TrimmedTextTests {
    @Test(arguments: [
        ("", ""), (" \t\r\n", ""), ("a", "a"), (" a b\t", "a b"), ("\r\n q=0.5 \r\n", "q=0.5"), ("é ", "é"),
        // A combining mark and a prepended one form characters with the space beside them.
        (" \u{301}x", "\u{301}x"), ("x\u{600} ", "x\u{600}"), ("\u{A0}a", "\u{A0}a"),
    ])
    func `Spaces, tabs and line ends are removed, and no other bytes`(_ text: String, _ trimmed: String) {
        #expect(Array(text.trimmed.utf8) == Array(trimmed.utf8))
        #expect(Array("<\(text)>".dropFirst().dropLast().trimmed.utf8) == Array(trimmed.utf8))
    }
}
