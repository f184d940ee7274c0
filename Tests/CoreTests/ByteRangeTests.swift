import Testing

@testable import Core

@Suite struct ByteRangeTests {
    @Test(
        arguments: [
            (nil, 100, .whole), ("bytes=0-49", 100, .part(first: 0, last: 49)),
            ("bytes=50-", 100, .part(first: 50, last: 99)),
            ("bytes=50-500", 100, .part(first: 50, last: 99)), ("bytes=-10", 100, .part(first: 90, last: 99)),
            ("bytes=-500", 100, .part(first: 0, last: 99)), ("Bytes=0-0", 100, .part(first: 0, last: 0)),
            ("bytes=100-", 100, .unsatisfiable), ("bytes=-0", 100, .unsatisfiable), ("bytes=0-", 0, .unsatisfiable),
            ("bytes=-5", 0, .whole), ("bytes=0-1,3-4", 100, .whole), ("bytes=5-4", 100, .whole),
            ("items=0-4", 100, .whole),
            ("bytes=", 100, .whole), ("bytes=a-b", 100, .whole), ("bytes=--5", 100, .whole), ("bytes 0-4", 100, .whole),
            ("bytes=99999999999999999999-", 100, .unsatisfiable),
            ("bytes=1-99999999999999999999", 100, .part(first: 1, last: 99)),
            ("bytes=-99999999999999999999", 100, .part(first: 0, last: 99)), ("bytes=1-2x", 100, .whole),
        ] as [(String?, Int64, ByteRange)])
    func `A single range is served, and an unreadable one is ignored`(
        _ header: String?, _ length: Int64, _ range: ByteRange
    ) {
        #expect(ByteRange.select(range: header, length: length) == range)
    }

    @Test(
        arguments: [
            ("\"a\"", "\"a\"", true), ("\"b\"", "\"a\"", false), ("W/\"a\"", "W/\"a\"", false), ("\"a\"", nil, false),
            ("Tue, 01 Dec 2026 00:00:00 GMT", "\"a\"", false),
        ] as [(String, String?, Bool)])
    func `If-Range requires an equal strong entity tag`(_ ifRange: String, _ entityTag: String?, _ counts: Bool) {
        let range = ByteRange.select(range: "bytes=1-1", ifRange: ifRange, entityTag: entityTag, length: 9)
        #expect(range == (counts ? .part(first: 1, last: 1) : .whole))
    }
}
