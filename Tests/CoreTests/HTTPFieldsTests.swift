import Testing

@testable import Core

@Suite struct HTTPFieldsTests {
    @Test func `names compare without ASCII case, and with nothing else folded`() {
        var fields = HTTPFields([HTTPField(name: "ETag", value: "1"), HTTPField(name: "etag", value: "2")])
        #expect(fields["ETAG"] == "1")
        #expect(fields.values("eTag") == ["1", "2"])
        #expect(fields.contains("etag") && !fields.contains("et"))
        fields.set("Etag", "3")
        #expect(fields.fields == [HTTPField(name: "Etag", value: "3")])
        fields.remove("ETAG")
        #expect(fields.fields.isEmpty)
        #expect(!"K".equalsIgnoringASCIICase("\u{212A}"))
        #expect(!"é".equalsIgnoringASCIICase("e\u{301}"))
        #expect("ÄbC".asciiLowercased == "Äbc")
    }

    @Test func `moments saturate instead of overflowing`() {
        let last = Timestamp(milliseconds: .max)
        let first = Timestamp(milliseconds: .min)
        #expect(last + .seconds(1) == last)
        #expect(first + .seconds(-1) == first)
        #expect(first - .seconds(1) == first)
        #expect(last - first == .milliseconds(Int64.max))
        #expect(Duration.seconds(Int64.max).milliseconds == .max)
        #expect(Duration.seconds(Int64.min).milliseconds == .min)
        #expect(Duration.milliseconds(1500).seconds == 1.5)
    }
}
