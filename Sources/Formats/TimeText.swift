/// Times in milliseconds since 1970, as text by RFC 3339.
package enum TimeText {
    /// 0000-01-01T00:00:00.000Z to 9999-12-31T23:59:59.999Z.
    package static let writable: ClosedRange<Int64> = -62_167_219_200_000...253_402_300_799_999

    /// UTC with milliseconds, `2026-12-01T00:00:00.000Z`. Times outside years 0000–9999 become the nearest writable
    /// one.
    package static func append(_ milliseconds: Int64, to text: inout [UInt8]) {
        let time = CivilTime(milliseconds: min(max(milliseconds, writable.lowerBound), writable.upperBound))
        func append(_ value: Int, from first: Int, _ end: Unicode.Scalar) {
            var divisor = first
            while divisor > 0 {
                text.append(UInt8(ascii: "0") + UInt8(value / divisor % 10))
                divisor /= 10
            }
            text.append(UInt8(ascii: end))
        }
        append(time.year, from: 1000, "-")
        append(time.month, from: 10, "-")
        append(time.day, from: 10, "T")
        append(time.hour, from: 10, ":")
        append(time.minute, from: 10, ":")
        append(time.second, from: 10, ".")
        append(time.millisecond, from: 100, "Z")
    }

    /// Reads RFC 3339: date, `T`, time, optional fraction, `Z` or an offset.
    ///
    /// Digits after the millisecond are dropped. Second 60 is accepted only at 23:59:60 UTC, and means the following
    /// midnight.
    ///
    /// - SeeAlso: RFC 3339 section 5.6.
    package static func parse(_ text: String) -> Int64? {
        var rest = Array(text.utf8)[...]
        guard let year = number(4, &rest), skip("-", &rest), let month = number(2, &rest), skip("-", &rest),
            let day = number(2, &rest), skip("Tt", &rest),
            let hour = number(2, &rest), skip(":", &rest), let minute = number(2, &rest), skip(":", &rest),
            let second = number(2, &rest), second <= 60,
            let millisecond = fraction(&rest), let offset = offset(&rest), rest.isEmpty
        else { return nil }
        let civil = CivilTime(
            year: year, month: month, day: day, hour: hour, minute: minute, second: min(second, 59),
            millisecond: millisecond)
        guard civil.isValid else { return nil }
        var time = civil.milliseconds - Int64(offset) * 60_000
        if second == 60 {
            let utc = CivilTime(milliseconds: time)
            guard utc.hour == 23, utc.minute == 59 else { return nil }
            time += Int64(1000 - millisecond)
        }
        return writable.contains(time) ? time : nil
    }

    /// The milliseconds of an optional fraction; `nil` for a point without digits.
    private static func fraction(_ rest: inout ArraySlice<UInt8>) -> Int? {
        guard skip(".", &rest) else { return 0 }
        let digits = rest.prefix(while: Bytes.isDigit)
        guard !digits.isEmpty else { return nil }
        rest = rest.dropFirst(digits.count)
        return (digits.prefix(3) + [0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Minutes east of UTC.
    private static func offset(_ rest: inout ArraySlice<UInt8>) -> Int? {
        if skip("Zz", &rest) { return 0 }
        let sign = skip("+", &rest) ? 1 : skip("-", &rest) ? -1 : 0
        guard sign != 0, let hours = number(2, &rest), hours <= 23, skip(":", &rest),
            let minutes = number(2, &rest), minutes <= 59
        else { return nil }
        return sign * (hours * 60 + minutes)
    }

    private static func number(_ count: Int, _ rest: inout ArraySlice<UInt8>) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy(Bytes.isDigit) else { return nil }
        rest = rest.dropFirst(count)
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Skips one of these characters.
    private static func skip(_ characters: StaticString, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard let first = rest.first, characters.withUTF8Buffer({ $0.contains(first) }) else { return false }
        rest = rest.dropFirst()
        return true
    }
}
