import Testing
import Wire

private struct Colour: WireName {
    let rawValue: String
    static let known: [Colour] = ["red", "green"]
}

private struct Inner: Shape {
    var x: Int64 = 0

    mutating func visit(_ members: inout some MemberVisitor) { members.member("x", &x, 1...9) }
}

private struct Outer: Shape {
    var text = ""
    var count: Int64?
    var ratio = 0.5
    var flag = false
    var colour: Colour = "red"
    var inner: Inner?
    var list: [Inner] = []
    var map = StringMap()
    var change: Change<String> = .unchanged

    mutating func visit(_ members: inout some MemberVisitor) {
        members.member("text", &text, .length(1...3))
        members.optional("count", &count, 0...10)
        members.defaulted("ratio", &ratio, 0...1)
        members.defaulted("flag", &flag)
        members.defaulted("colour", &colour)
        members.optional("inner", &inner)
        members.defaulted("list", &list, .count(0...2))
        members.defaulted("map", &map)
        members.change("change", &change)
    }
}

private func read(_ text: String, _ mode: ReadingMode = .strict) throws(JSONError) -> Outer {
    try Outer(parsing: Array(text.utf8), mode)
}

private func faults(_ text: String, _ mode: ReadingMode = .strict) -> [String] {
    do {
        _ = try read(text, mode)
        return []
    } catch { return error.faults.map { "\($0.pointer) \($0.code.rawValue)" } }
}

@Suite struct ObjectReaderTests {
    @Test func `Members are read by name`() throws {
        let outer = try read(
            #"{"text":"abc","count":3,"ratio":1,"flag":true,"colour":"green","inner":{"x":4},"list":[{"x":1},{"x":2}],"#
                + #""map":{"b":"2","a":"1"},"change":"new"}"#)
        #expect(outer.text == "abc")
        #expect(outer.count == 3)
        #expect(outer.ratio == 1)
        #expect(outer.flag)
        #expect(outer.colour == "green")
        #expect(outer.inner?.x == 4)
        #expect(outer.list.map(\.x) == [1, 2])
        #expect(outer.map.map(\.name) == ["b", "a"])
        #expect(outer.change == .set("new"))
    }

    @Test func `Absent members have their defaults`() throws {
        let outer = try read(#"{"text":"a"}"#)
        #expect(outer.count == nil)
        #expect(outer.ratio == 0.5)
        #expect(outer.colour == "red")
        #expect(outer.inner == nil)
        #expect(outer.list.isEmpty)
        #expect(outer.change == .unchanged)
        #expect(try read(#"{"text":"a","change":null}"#).change == .clear)
    }

    @Test(arguments: [
        ("{}", ["/text invalid-value"]),
        (#"{"text":null}"#, ["/text invalid-value"]),
        (#"{"text":1}"#, ["/text invalid-value"]),
        (#"{"text":""}"#, ["/text invalid-value"]),
        (#"{"text":"abcd"}"#, ["/text invalid-value"]),
        (#"{"text":"a","count":"1"}"#, ["/count invalid-value"]),
        (#"{"text":"a","count":1.0}"#, ["/count invalid-value"]),
        (#"{"text":"a","count":1e1}"#, ["/count invalid-value"]),
        (#"{"text":"a","count":-0}"#, ["/count invalid-value"]),
        (#"{"text":"a","count":11}"#, ["/count invalid-value"]),
        (#"{"text":"a","count":9223372036854775808}"#, ["/count invalid-value"]),
        (#"{"text":"a","ratio":1.5}"#, ["/ratio invalid-value"]),
        (#"{"text":"a","ratio":null}"#, ["/ratio invalid-value"]),
        (#"{"text":"a","flag":1}"#, ["/flag invalid-value"]),
        (#"{"text":"a","colour":"Red"}"#, ["/colour invalid-value"]),
        (#"{"text":"a","colour":3}"#, ["/colour invalid-value"]),
        (#"{"text":"a","inner":[]}"#, ["/inner invalid-value"]),
        (#"{"text":"a","inner":{"x":0,"y":1}}"#, ["/inner/x invalid-value", "/inner/y unknown-member"]),
        (#"{"text":"a","list":[{"x":1},{"x":1},{"x":1}]}"#, ["/list invalid-value"]),
        (#"{"text":"a","list":[{"x":1},7]}"#, ["/list/1 invalid-value"]),
        (#"{"text":"a","map":{"k/v":1}}"#, ["/map/k~1v invalid-value"]),
        (#"{"text":"a","change":1}"#, ["/change invalid-value"]),
        (#"{"text":"a","Text":"b","urll":1}"#, ["/Text unknown-member", "/urll unknown-member"]),
        ("[]", [" invalid-value"]),
        ("1", [" invalid-value"]),
    ])
    func `All faults are reported with their positions`(_ text: String, _ expected: [String]) {
        #expect(faults(text) == expected)
    }

    @Test func `An unknown member outweighs a missing one`() {
        #expect(throws: JSONError.self) { try read(#"{"txt":"a"}"#) }
        do { _ = try read(#"{"txt":"a"}"#) } catch { #expect(error.code == "unknown-member") }
        do { _ = try read(#"{"text":7}"#) } catch { #expect(error.code == "invalid-value") }
        do { _ = try read(#"{"text":"a","text":"b"}"#) } catch { #expect(error.code == "duplicate-member") }
        do { _ = try read("{") } catch { #expect(error.code == "malformed-json") }
    }

    @Test func `A tolerant reader skips unknown members`() throws {
        let outer = try read(#"{"text":"abcd","colour":"blue","new":1,"ratio":7,"inner":{"x":12,"y":[]}}"#, .tolerant)
        #expect(outer.colour == "blue" && !outer.colour.isKnown)
        #expect(outer.ratio == 7)
        #expect(outer.inner?.x == 12)
        #expect(faults(#"{"text":1}"#, .tolerant) == ["/text invalid-value"])
    }
}
