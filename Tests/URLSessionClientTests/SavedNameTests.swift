import Testing
import URLSessionClient

struct SavedNameTests {
    @Test(.timeLimit(.minutes(1)))
    func `A name of any length is shortened in one pass`() {
        let name = SavedName(String(repeating: "x", count: 300_000) + ".tar")?.text
        #expect(name == String(repeating: "x", count: 196) + ".tar")
    }
}
