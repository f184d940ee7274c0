import Testing
import Wire

@Suite struct JSONWriterTests {
    private func text(_ json: JSON) -> String { String(decoding: json.jsonBytes, as: UTF8.self) }

    private static let rows: [(JSON, String)] = [
        (.null, "null"), (true, "true"), (.integer(.min), "-9223372036854775808"), (1.5, "1.5"),
        (.number(1), "1.0"), (.number(.nan), "null"), (.number(1e300), "1e+300"),
        ("a\"\\/\u{1}\u{1f}\n\r\t\u{8}\u{c}\u{7f}\u{e9}", #""a\"\\/\u0001\u001f\n\r\t\b\f"# + "\u{7f}\u{e9}\""),
        ([], "[]"), ([:], "{}"), ([1, [2], ["a": 3, "b": nil]], #"[1,[2],{"a":3,"b":null}]"#),
    ]

    @Test(arguments: rows)
    func `Values are written compactly`(_ json: JSON, _ expected: String) {
        #expect(text(json) == expected)
    }

    @Test func `Written values are read back`() throws {
        let json: JSON = ["b": [1, 1.5, "\u{0001}\u{1F600}", nil], "a": ["x": [[:]], "y": false], "": -7]
        #expect(try JSON.parse(json.jsonBytes) == json)
    }

    @Test func `The writer adds the commas`() {
        var writer = JSONWriter()
        writer.object { writer in
            writer.member("seq", 4)
            writer.memberIfPresent("absent", String?.none)
            writer.member("none", String?.none)
            writer.object("data") { $0.member("a", ["x", "y"]) }
            writer.array("list") {
                $0.value(1)
                $0.value(2.0)
                $0.array { _ in }
            }
            writer.member("raw", raw: Array("{\"k\":1}".utf8))
            writer.member("last", 0.25)
        }
        let expected = #"{"seq":4,"none":null,"data":{"a":["x","y"]},"list":[1,2,[]],"raw":{"k":1},"last":0.25}"#
        #expect(String(decoding: writer.bytes, as: UTF8.self) == expected)
    }

    @Test func `Members and elements are found by name and index`() {
        let json: JSON = ["a": [1, 2.5, "x", true, nil]]
        #expect(json["a"]?[0]?.integerValue == 1)
        #expect(json["a"]?[1]?.numberValue == 2.5)
        #expect(json["a"]?[2]?.stringValue == "x")
        #expect(json["a"]?[3]?.boolValue == true)
        #expect(json["a"]?[4]?.isNull == true)
        #expect(json["a"]?[5] == nil)
        #expect(json["b"] == nil)
    }

    @Test(arguments: [Int64.min, -10, -1, 0, 9, 10, 1_234_567_890_123, .max])
    func `A number is written in decimal`(number: Int64) {
        #expect(number.jsonBytes == Array("\(number)".utf8))
    }
}
