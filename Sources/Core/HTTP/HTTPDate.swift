import Formats

/// The date format of HTTP, with a parser for all three forms (RFC 9110 section 5.6.7).
package enum HTTPDate {
    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let longDays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Parses IMF-fixdate, the obsolete RFC 850 form and the form of C's `asctime`; `nil` for anything else.
    ///
    /// The weekday must be a valid name but need not match the date.
    ///
    /// - Parameter now: A two-digit year of RFC 850 is in the past if it would be more than 50 years ahead.
    package static func parse(_ text: String, now: Timestamp) -> Timestamp? {
        let scanner = ByteScanner(trimming: text)
        return fixdate(scanner) ?? rfc850(scanner, now: now) ?? asctime(scanner)
    }

    private static func fixdate(_ start: ByteScanner) -> Timestamp? {
        var scanner = start
        guard name(&scanner, of: days) != nil, scanner.skip(","), scanner.skip(" "),
            let day = scanner.digits(2), scanner.skip(" "), let month = name(&scanner, of: months), scanner.skip(" "),
            let year = scanner.digits(4), scanner.skip(" "), let clock = clock(&scanner), gmt(&scanner)
        else { return nil }
        return moment(year, month, day, clock)
    }

    private static func rfc850(_ start: ByteScanner, now: Timestamp) -> Timestamp? {
        var scanner = start
        guard name(&scanner, of: longDays) != nil, scanner.skip(","), scanner.skip(" "),
            let day = scanner.digits(2), scanner.skip("-"), let month = name(&scanner, of: months), scanner.skip("-"),
            let shortYear = scanner.digits(2), scanner.skip(" "), let clock = clock(&scanner), gmt(&scanner)
        else { return nil }
        let thisYear = CivilTime(milliseconds: min(max(now, .earliestWritable), .latestWritable).milliseconds).year
        let year = thisYear - thisYear % 100 + shortYear
        return moment(year > thisYear + 50 ? year - 100 : year, month, day, clock)
    }

    private static func asctime(_ start: ByteScanner) -> Timestamp? {
        var scanner = start
        guard name(&scanner, of: days) != nil, scanner.skip(" "),
            let month = name(&scanner, of: months), scanner.skip(" "),
            let day = scanner.skip(" ") ? scanner.digits(1) : scanner.digits(2), scanner.skip(" "),
            let clock = clock(&scanner), scanner.skip(" "), let year = scanner.digits(4), scanner.isAtEnd
        else { return nil }
        return moment(year, month, day, clock)
    }

    private static func name(_ scanner: inout ByteScanner, of names: [String]) -> Int? {
        let word = scanner.take(while: \.isLetter)
        return names.firstIndex { $0.utf8.elementsEqual(word) }
    }

    private static func clock(_ scanner: inout ByteScanner) -> (hour: Int, minute: Int, second: Int)? {
        guard let hour = scanner.digits(2), scanner.skip(":"), let minute = scanner.digits(2), scanner.skip(":"),
            let second = scanner.digits(2), second <= 60
        else { return nil }
        return (hour, minute, second)
    }

    private static func gmt(_ scanner: inout ByteScanner) -> Bool {
        guard scanner.skip(" ") else { return false }
        return scanner.take { _ in true }.elementsEqual("GMT".utf8)
    }

    private static func moment(
        _ year: Int, _ month: Int, _ day: Int, _ clock: (hour: Int, minute: Int, second: Int)
    ) -> Timestamp? {
        let time = CivilTime(
            year: year, month: month + 1, day: day, hour: clock.hour, minute: clock.minute,
            second: min(clock.second, 59))
        guard time.isValid else { return nil }
        return Timestamp(milliseconds: time.milliseconds + (clock.second == 60 ? 1000 : 0))
    }
}
