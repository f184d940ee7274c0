package import Formats

/// A window of the week, in UTC, in which discretionary work may run.
package struct ServiceWindow: Shape {
    package enum Weekday: String, Word, CaseIterable, Comparable {
        case sunday, monday, tuesday, wednesday, thursday, friday, saturday

        package static func < (left: Weekday, right: Weekday) -> Bool { left.rawValue < right.rawValue }
    }

    /// The days on which it opens.
    package var days: Set<Weekday> = []
    /// Minutes from midnight, 0…1439.
    package var from = 0
    /// Minutes from midnight, 0…1440. A value before ``from`` refers to the next day, an equal one to a whole day.
    package var to = 0
    /// The bandwidth limit of all transfers in bytes per second while the window is open.
    package var bandwidthLimit: Int64?

    package init() {}

    package init(
        days: Set<Weekday> = Set(Weekday.allCases), from: Int, to: Int, bandwidthLimit: Int64? = nil
    ) {
        self.days = days
        self.from = from
        self.to = to
        self.bandwidthLimit = bandwidthLimit
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("days", &days)
        members.member("from", &from)
        members.member("to", &to)
        members.optional("bandwidthLimit", &bandwidthLimit)
    }

    /// The duration of each opening.
    var length: Duration { .seconds(60 * (to > from ? to - from : to - from + 1440)) }

    /// The openings relevant around a time, in order: from the day before, whose opening may still last, to the same
    /// day next week.
    func openings(around now: Timestamp) -> [(opens: Timestamp, closes: Timestamp)] {
        let today = now.milliseconds.flooredDivision(by: CivilTime.millisecondsPerDay).quotient
        return (today - 1...today + 7).compactMap { day in
            // 1970-01-01 was a Thursday.
            let weekday = Weekday.allCases[Int((day + 4).flooredDivision(by: 7).remainder)]
            guard days.contains(weekday) else { return nil }
            let midnight = Timestamp(milliseconds: day * CivilTime.millisecondsPerDay)
            let opens = midnight + .seconds(from * 60)
            return (opens, opens + length)
        }
    }

    package func isOpen(at now: Timestamp) -> Bool {
        openings(around: now).contains { $0.opens <= now && now < $0.closes }
    }

    /// When the window next opens; `nil` without days.
    package func nextOpening(after now: Timestamp) -> Timestamp? {
        openings(around: now).first { $0.opens > now }?.opens
    }

    /// When the window next opens or closes.
    package func nextChange(after now: Timestamp) -> Timestamp? {
        openings(around: now).flatMap { [$0.opens, $0.closes] }.filter { $0 > now }.min()
    }
}
