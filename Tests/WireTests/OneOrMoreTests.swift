import Testing
import Wire

struct OneOrMoreTests {
    private func read(_ text: String) -> [String] {
        do {
            let selection = try TaskSelection(parsing: Array(text.utf8))
            return selection.outcome?.words.map(\.rawValue) ?? ["all"]
        } catch { return error.faults.map(\.pointer) }
    }

    @Test func `A word or an array of words is read, and an empty array is refused`() {
        #expect(read("{}") == ["all"])
        #expect(read(#"{"outcome": "failed"}"#) == ["failed"])
        #expect(read(#"{"outcome": ["failed", "httpError"]}"#) == ["failed", "httpError"])
        #expect(read(#"{"outcome": []}"#) == ["/outcome"])
        #expect(read(#"{"outcome": 3}"#) == ["/outcome"])
    }

    @Test func `One word is written as a word`() {
        #expect(
            String(decoding: TaskSelection { $0.outcome = [.failed] }.jsonBytes, as: UTF8.self)
                == #"{"outcome":"failed"}"#)
        #expect(String(decoding: TaskSelection { $0.outcome = [] }.jsonBytes, as: UTF8.self) == #"{"outcome":[]}"#)
    }
}
