import Formats
import Testing

@testable import Core

@Suite struct HTTPFieldsTests {
    @Test func `Names are compared without ASCII case and without other folding`() {
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

    @Test func `Of too many fields the largest are dropped, and their names are kept`() {
        let small = HTTPFields([HTTPField(name: "A", value: "1"), HTTPField(name: "b", value: "2")])
        #expect(small.kept == HTTPFields.Kept(fields: small, droppedNames: []))
        let large = HTTPField(name: "Large", value: String(repeating: "x", count: 16 * 1024 - 32 - 5))
        #expect(HTTPFields([large]).kept.droppedNames == [])
        #expect(HTTPFields([large] + small.fields).kept == HTTPFields.Kept(fields: small, droppedNames: ["Large"]))
        // Even empty fields have a cost; each name is kept once, up to a limit.
        let empty = HTTPFields((0..<10_000).map { HTTPField(name: "e\($0 % 40)", value: "") })
        #expect(empty.kept.fields.fields.count < 500)
        #expect(empty.kept.droppedNames.count == 32)
        let long = HTTPFields([HTTPField(name: String(repeating: "n", count: 20_000), value: "")])
        #expect(long.kept.droppedNames.first?.utf8.count == 67 && long.kept.fields.fields.isEmpty)
    }

    @Test func `The URLs of many requests have a size limit`() {
        var progress = TaskProgress()
        for number in 0..<64 {
            progress.record(
                TransactionMetrics { $0.url = "https://x/\(number)/" + String(repeating: "u", count: 8000) })
        }
        #expect(progress.transactions.count == 4)
        #expect(progress.transactions.last?.url.hasPrefix("https://x/63/") == true)
    }

    @Test func `Arithmetic of timestamps saturates instead of overflowing`() {
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
