/// A time in UTC on the proleptic Gregorian calendar, in its parts.
package struct CivilTime: Hashable {
    package var year: Int
    package var month: Int
    package var day: Int
    package var hour: Int
    package var minute: Int
    package var second: Int
    package var millisecond: Int

    package static let millisecondsPerDay: Int64 = 86_400_000

    package init(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int, millisecond: Int = 0
    ) {
        (self.year, self.month, self.day) = (year, month, day)
        (self.hour, self.minute, self.second) = (hour, minute, second)
        self.millisecond = millisecond
    }

    /// - Parameter milliseconds: Milliseconds since 1970.
    package init(milliseconds: Int64) {
        let (days, rest) = milliseconds.flooredDivision(by: Self.millisecondsPerDay)
        (year, month, day) = Self.date(daysSince1970: days)
        let seconds = Int(rest / 1000)
        self.millisecond = Int(rest % 1000)
        (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// Whether every part is in its range. The caller decides about second 60.
    package var isValid: Bool {
        (1...12).contains(month) && day >= 1 && day <= Self.daysIn(month: month, year: year)
            && (0...23).contains(hour) && (0...59).contains(minute) && (0...59).contains(second)
    }

    /// Milliseconds since 1970.
    package var milliseconds: Int64 {
        let seconds = Int64(hour * 3600 + minute * 60 + second)
        let days = Self.daysSince1970(year: year, month: month, day: day)
        return days * Self.millisecondsPerDay + seconds * 1000 + Int64(millisecond)
    }

    private static func daysIn(month: Int, year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970 of a civil date, counted in 400-year eras that begin in March, so that the leap day is an era's
    /// last.
    ///
    /// - SeeAlso: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
    private static func daysSince1970(year: Int, month: Int, day: Int) -> Int64 {
        let shifted = Int64(month <= 2 ? year - 1 : year)
        let (era, yearOfEra) = shifted.flooredDivision(by: 400)
        let dayOfYear = Int64((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1)
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        return era * 146_097 + dayOfEra - 719_468
    }

    private static func date(daysSince1970: Int64) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = (daysSince1970 + 719_468).flooredDivision(by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let day = Int(dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
        let month = Int(shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9)
        return (Int(yearOfEra + era * 400) + (month <= 2 ? 1 : 0), month, day)
    }
}

extension Int64 {
    /// The quotient, rounded down, and the non-negative remainder.
    package func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}
