extension Timestamp {
    /// 0000-01-01T00:00:00.000Z, the first moment RFC 3339 can write.
    package static let earliestWritable = Timestamp(milliseconds: -62_167_219_200_000)
    /// 9999-12-31T23:59:59.999Z, the last one.
    package static let latestWritable = Timestamp(milliseconds: 253_402_300_799_999)

    /// UTC with milliseconds, `2026-12-01T00:00:00.000Z`; moments outside years 0000–9999 become the nearest writable.
    package var rfc3339: String {
        let time = CivilTime(min(max(self, .earliestWritable), .latestWritable))
        let date = "\(time.year.padded(4))-\(time.month.padded(2))-\(time.day.padded(2))"
        let clock = "\(time.hour.padded(2)):\(time.minute.padded(2)):\(time.second.padded(2))"
        return "\(date)T\(clock).\(time.millisecond.padded(3))Z"
    }

    /// Reads RFC 3339: date, `T`, time, optional fraction, `Z` or an offset.
    ///
    /// Digits behind the millisecond are cut off. Second 60 is taken only where UTC can have one, at 23:59:60, and is
    /// the midnight after it.
    ///
    /// - SeeAlso: RFC 3339 section 5.6.
    package init?(rfc3339 text: String) {
        var scanner = ByteScanner(text)
        guard let year = scanner.digits(4), scanner.skip("-"), let month = scanner.digits(2), scanner.skip("-"),
            let day = scanner.digits(2), scanner.skip(word: "T"),
            let hour = scanner.digits(2), scanner.skip(":"), let minute = scanner.digits(2), scanner.skip(":"),
            let second = scanner.digits(2), second <= 60,
            let millisecond = Self.fraction(&scanner), let offset = Self.offset(&scanner), scanner.isAtEnd
        else { return nil }
        let civil = CivilTime(
            year: year, month: month, day: day, hour: hour, minute: minute, second: min(second, 59),
            millisecond: millisecond)
        guard civil.isValid else { return nil }
        var time = civil.timestamp - .seconds(offset * 60)
        if second == 60 {
            let utc = CivilTime(time)
            guard utc.hour == 23, utc.minute == 59 else { return nil }
            time = time + .milliseconds(1000 - millisecond)
        }
        guard time >= .earliestWritable, time <= .latestWritable else { return nil }
        self = time
    }

    /// Milliseconds of an optional fraction; nil for a point without digits.
    private static func fraction(_ scanner: inout ByteScanner) -> Int? {
        guard scanner.skip(".") else { return 0 }
        let run = scanner.take(while: \.isDigit)
        guard !run.isEmpty else { return nil }
        return (run.prefix(3) + [0x30, 0x30]).prefix(3).reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// Minutes east of UTC.
    private static func offset(_ scanner: inout ByteScanner) -> Int? {
        if scanner.skip(word: "Z") { return 0 }
        let sign = scanner.skip("+") ? 1 : scanner.skip("-") ? -1 : 0
        guard sign != 0, let hours = scanner.digits(2), hours <= 23, scanner.skip(":"),
            let minutes = scanner.digits(2), minutes <= 59
        else { return nil }
        return sign * (hours * 60 + minutes)
    }
}
