import Testing

@testable import Core

@Suite struct TimestampTests {
    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_796_083_200_000, "2026-12-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func `A timestamp is written in UTC with milliseconds and read back`(_ milliseconds: Int64, _ text: String) {
        #expect(Timestamp(milliseconds: milliseconds).rfc3339 == text)
        #expect(Timestamp(rfc3339: text)?.milliseconds == milliseconds)
    }

    @Test func `Timestamps beyond the calendar are written as its limits`() {
        #expect(Timestamp(milliseconds: .max).rfc3339 == "9999-12-31T23:59:59.999Z")
        #expect(Timestamp(milliseconds: .min).rfc3339 == "0000-01-01T00:00:00.000Z")
    }

    @Test(arguments: [
        ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00.000Z"),
        ("2026-12-01t00:00:00z", "2026-12-01T00:00:00.000Z"),
        ("2026-12-01T00:00:00.5Z", "2026-12-01T00:00:00.500Z"),
        ("2026-12-01T00:00:00.123456789Z", "2026-12-01T00:00:00.123Z"),
        ("2026-12-01T02:30:00+02:30", "2026-12-01T00:00:00.000Z"),
        ("2026-11-30T19:00:00-05:00", "2026-12-01T00:00:00.000Z"),
        ("2026-12-01T00:00:00-00:00", "2026-12-01T00:00:00.000Z"),
        ("1990-12-31T23:59:60Z", "1991-01-01T00:00:00.000Z"),
        ("1990-12-31T15:59:60.25-08:00", "1991-01-01T00:00:00.000Z"),
    ])
    func `Offsets, fractions and leap seconds are read`(_ text: String, _ canonical: String) {
        #expect(Timestamp(rfc3339: text)?.rfc3339 == canonical)
    }

    @Test(arguments: [
        "", "2026-12-01", "2026-12-01T00:00:00", "2026-12-01 00:00:00Z", "2026-12-01T00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2026-12-00T00:00:00Z",
        "2026-12-01T24:00:00Z", "2026-12-01T00:60:00Z", "2026-12-01T00:00:61Z", "2026-12-01T00:00:00.Z",
        "2026-12-01T00:00:00+2:00", "2026-12-01T00:00:00+0200", "2026-12-01T00:00:00+24:00",
        "2026-12-01T00:00:00+00:60", "2026-12-01T00:00:00Z ", " 2026-12-01T00:00:00Z", "+026-12-01T00:00:00Z",
        "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:59-00:01", "2026-12-01T12:00:60Z", "２026-12-01T00:00:00Z",
        "12026-12-01T00:00:00Z", "2026-12-01T00:00:00,5Z",
    ])
    func `Texts that violate RFC 3339 are refused`(_ text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test func `Every third day of 400 years survives writing and reading`() {
        for day in stride(from: Int64(-20_000), to: 130_000, by: 3) {
            let time = Timestamp(milliseconds: day * 86_400_000 + 43_200_123)
            let read = Timestamp(rfc3339: time.rfc3339)
            if read != time { Issue.record("\(time.rfc3339) became \(String(describing: read))") }
        }
    }

    @Test(arguments: [
        "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
        " Sun, 06 Nov 1994 08:49:37 GMT\t", "Mon, 06 Nov 1994 08:49:37 GMT",
    ])
    func `The three forms of an HTTP date are read`(_ text: String) {
        #expect(HTTPDate.parse(text, now: now) == Timestamp(milliseconds: 784_111_777_000))
    }

    @Test func `A two-digit year lies at most fifty years ahead`() {
        let at = Timestamp(rfc3339: "2026-06-01T00:00:00Z")!
        #expect(
            HTTPDate.parse("Sunday, 06-Nov-76 08:49:37 GMT", now: at)?.rfc3339 == "2076-11-06T08:49:37.000Z")
        #expect(
            HTTPDate.parse("Sunday, 06-Nov-77 08:49:37 GMT", now: at)?.rfc3339 == "1977-11-06T08:49:37.000Z")
    }

    @Test(arguments: [
        "", "soon", "784111777", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 GMT",
        "Sun, 06 Nov 1994 08:49:37 +0000", "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Foo 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 25:49:37 GMT", "sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 GMT+1",
        "Sun Nov 6 08:49:37 1994", "Sun, 30 Feb 1994 08:49:37 GMT",
    ])
    func `Invalid HTTP dates are refused`(_ text: String) {
        #expect(HTTPDate.parse(text, now: now) == nil)
    }

    @Test func `A leap second in an HTTP date is read`() {
        #expect(HTTPDate.parse("Fri, 31 Dec 1999 23:59:60 GMT", now: now)?.rfc3339 == "2000-01-01T00:00:00.000Z")
    }
}
