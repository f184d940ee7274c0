import Testing
import Wire

private func parse(_ text: String) throws(JSONError) -> JSON { try JSON.parse(Array(text.utf8)) }

private func faults(_ text: String) -> [Fault] {
    do {
        _ = try parse(text)
        return []
    } catch { return error.faults }
}

private func isMalformed(_ bytes: [UInt8]) -> Bool {
    do {
        _ = try JSON.parse(bytes)
        return false
    } catch {
        if case .malformed = error { return true }
        return false
    }
}

private let document = """
    {"null": null, "truth": [true, false], "whole": [0, -1, 9223372036854775807], "numbers": [0.5, -0, 1e2, 1E-7],
     "text": "caf\u{e9} \\u00e9 \\ud83d\\ude00 \\"\\\\\\/\\b\\f\\n\\r\\t", "empty": [{}, [], ""]}
    """

@Suite struct JSONParserTests {
    @Test func `A document of all kinds is read`() throws {
        let expected: JSON = [
            "null": nil, "truth": [true, false], "whole": [0, -1, 9_223_372_036_854_775_807],
            "numbers": [0.5, .number(-0.0), .number(100), 1e-7],
            "text": "caf\u{e9} \u{e9} \u{1F600} \"\\/\u{8}\u{c}\n\r\t", "empty": [[:], [], ""],
        ]
        #expect(try parse(document) == expected)
    }

    @Test func `Every truncation of a document is refused`() {
        let bytes = Array(document.utf8)
        for length in bytes.indices { #expect(isMalformed(Array(bytes.prefix(length)))) }
    }

    @Test func `No single changed byte crashes`() {
        let bytes = Array(document.utf8)
        for index in bytes.indices {
            for value: UInt8 in [0x00, 0x22, 0x5C, 0x7B, 0x5D, 0x80, 0xED, 0xFF] {
                var changed = bytes
                changed[index] = value
                _ = try? JSON.parse(changed)
            }
        }
    }

    @Test(arguments: [
        "", " ", "nul", "nulll", "True", "[1,]", "{\"a\":1,}", "[1 2]", "{\"a\" 1}", "{a:1}", "{'a':1}", "{1:1}",
        "[1]]",
        "1 2", "{}{}", "// c\n1", "/* c */1", "01", "-01", "-", "+1", "1.", ".5", "1e", "1e+", "0x10", "NaN",
        "Infinity",
        "\"", "\"\\\"", "\"\\x41\"", "\"\\u12\"", "\"\\u12G4\"", "\"\\uD800\"", "\"\\uDC00\"", "\"\\uD800\\u0041\"",
        "\"\\uD800x\"", "\"\n\"", "\"\t\"", "[\u{c}1]", "\u{a0}1", "\u{feff}1", "[,1]", "{,}", "{\"a\":}", "{\"a\"}",
        "[",
        "{", "]", "\u{0}", "1\u{0}",
    ])
    func `Texts that violate RFC 8259 are malformed`(_ text: String) {
        #expect(isMalformed(Array(text.utf8)))
    }

    @Test(
        arguments: [
            [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xC1, 0xBF, 0x22], [0x22, 0xE0, 0x80, 0xAF, 0x22],
            [0x22, 0xED, 0xA0, 0x80, 0x22], [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], [0x22, 0xC3, 0x22],
            [0x22, 0x80, 0x22],
            [0x22, 0x5C, 0x6E, 0xFF, 0x22], [0xEF, 0xBB, 0xBF, 0x31], [0xFF, 0xFE, 0x31, 0x00],
            [0x31, 0x00, 0x00, 0x00],
        ] as [[UInt8]])
    func `Invalid UTF-8 is malformed`(_ bytes: [UInt8]) {
        #expect(isMalformed(bytes))
    }

    @Test func `Nesting is bounded`() throws {
        let deepest = String(repeating: "[", count: 32) + String(repeating: "]", count: 32)
        #expect(try parse(deepest).elements?.count == 1)
        #expect(isMalformed(Array("[\(deepest)]".utf8)))
        #expect(isMalformed(Array(repeating: UInt8(ascii: "["), count: 2_000_000)))
        #expect(isMalformed(Array(String(repeating: "{\"a\":", count: 100_000).utf8)))
    }

    @Test(arguments: [
        ("9223372036854775807", JSON.integer(.max)), ("-9223372036854775808", .integer(.min)),
        ("9223372036854775808", .number(9_223_372_036_854_775_808)), ("0", .integer(0)), ("-0", .number(-0.0)),
        ("1.0", .number(1)), ("1e2", .number(100)), ("-12", .integer(-12)), ("1e-400", .number(0)),
        ("99999999999999999999", .number(1e20)),
    ])
    func `Whole numbers are distinguished from others`(_ text: String, _ expected: JSON) throws {
        #expect(try parse(text) == expected)
    }

    @Test func `Oversized numbers are invalid values, not syntax errors`() {
        for text in ["1e400", "-1e400", String(repeating: "9", count: 400), "0." + String(repeating: "1", count: 2000)]
        {
            let found = faults("{\"a\":[1,\(text)]}")
            #expect(found.map(\.pointer) == ["/a/1"])
            #expect(found.map(\.code) == [.invalidValue])
        }
    }

    @Test func `A duplicate name is reported with its position`() {
        let found = faults(#"{"a":[{"x":1,"y/~":2,"y/~":3,"\u0078":4}],"a":1}"#)
        #expect(found.map(\.pointer) == ["/a/0/y~1~0", "/a/0/x", "/a"])
        #expect(found.allSatisfy { $0.code == .duplicateMember })
    }

    @Test func `Names are compared as bytes`() throws {
        #expect(try parse("{\"\u{e9}\":1,\"e\u{301}\":2}").members?.count == 2)
        var members = (0..<100).map { "\"m\($0)\":\($0)" }
        members += ["\"\u{e9}\":1", "\"e\u{301}\":2"]
        #expect(try parse("{\(members.joined(separator: ","))}").members?.count == 102)
        members.append("\"m57\":0")
        #expect(faults("{\(members.joined(separator: ","))}").map(\.pointer) == ["/m57"])
    }

    @Test func `A null character in a string is an invalid value`() {
        #expect(faults(#"{"a":{"b":["x\u0000"]}}"#).map(\.pointer) == ["/a/b/0"])
        #expect(faults(#"["\u0000"]"#).map(\.code) == [.invalidValue])
    }

    @Test func `A syntax error outweighs other faults, and their number is limited`() {
        #expect(isMalformed(Array(#"{"a":1,"a":2"#.utf8)))
        let many = "[" + Array(repeating: #""\u0000""#, count: 1000).joined(separator: ",") + "]"
        #expect(faults(many).count == Faults.maximumCount)
    }

    @Test func `A batch of ten thousand tasks is read quickly`() throws {
        let metadata = String(repeating: "x", count: 2800)
        let task =
            #"{"kind":"download","request":{"url":"https://example.com/a.bin","headers":{"Accept":"*/*"}},"#
            + #""priority":0.5,"metadata":{"a":""# + metadata + #"","b":"caf\u00e9"},"clientTaskId":"a-17"}"#
        var text = "{\"tasks\":["
        for index in 0..<10_000 { text += (index == 0 ? "" : ",") + task }
        text += "]}"
        let bytes = Array(text.utf8)
        let clock = ContinuousClock()
        var tasks = 0
        let duration = try clock.measure { tasks = try JSON.parse(bytes)["tasks"]?.elements?.count ?? 0 }
        #expect(tasks == 10_000)
        // Well under a second in release mode; the limit is for debug builds on a busy machine.
        #expect(duration < .seconds(60), "\(bytes.count) bytes in \(duration)")
    }
}
