import Testing

@testable import Core

@Suite struct LinkFieldTests {
    private typealias Link = LinkField.Link

    @Test func `Links are read with their relations`() {
        let next = Link(target: "https://h/?a=1,2;3&b", relations: ["next"])
        for value in [
            "<https://h/?a=1,2;3&b>; rel=\"next\"", "<https://h/?a=1,2;3&b>;rel=next",
            " , <https://h/?a=1,2;3&b> ; REL = Next ,",
            "<https://h/?a=1,2;3&b>; title=\"a; rel=x, <y>\"; rel=next; rel=prev; crossorigin",
        ] {
            #expect(LinkField.parse([value]) == [next])
        }
        #expect(
            LinkField.parse(["</a>; rel=\"prev  Start\", <b>", "<c>; rel=next"]) == [
                Link(target: "/a", relations: ["prev", "start"]), Link(target: "b", relations: []),
                Link(target: "c", relations: ["next"]),
            ])
        #expect(LinkField.parse([]) == [])
    }

    @Test(arguments: ["a", "<a", "<a>; rel=\"next", "<a> b", "<a>; rel=next <b>", "<a>; rel=next b", "rel=next"])
    func `A malformed field is refused`(_ value: String) {
        #expect(LinkField.parse([value]) == nil)
    }
}
