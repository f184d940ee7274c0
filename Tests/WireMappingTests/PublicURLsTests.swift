import Testing

@testable import WireMapping

@Suite struct PublicURLsTests {
    @Test func `A session identifier is one path segment`() {
        let urls = PublicURLs(base: "https://x.example/base//")
        #expect(urls.events(of: "a:b@c+d~e/ä") == "https://x.example/base/v1/sessions/a:b@c+d~e%2F%C3%A4/events")
        #expect(urls.content(of: 7, in: "s") == "https://x.example/base/v1/sessions/s/tasks/7/content")
    }
}
