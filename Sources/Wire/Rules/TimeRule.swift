extension TextRule {
    /// A moment as RFC 3339 section 5.6 writes it: date, `T`, time, optional fraction, `Z` or an offset.
    public static let timestamp = TextRule { text in
        TimeText.isValid(Array(text.utf8)) ? nil : "This must be a time as in RFC 3339, such as 2026-12-01T00:00:00Z."
    }

    /// An hour and minute of a day, `00:00` to `24:00`.
    public static let timeOfDay = TextRule { text in
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"), let hour = TimeText.number(bytes[0..<2]),
            let minute = TimeText.number(bytes[3..<5]), minute <= 59, hour <= 23 || (hour == 24 && minute == 0)
        else { return "This must be a time of day from 00:00 to 24:00." }
        return nil
    }
}

private enum TimeText {
    static func isValid(_ bytes: [UInt8]) -> Bool {
        // 2026-12-01T00:00:00, then the fraction, then the offset.
        guard bytes.count >= 20, bytes[4] == 0x2D, bytes[7] == 0x2D, bytes[10] | 0x20 == UInt8(ascii: "t"),
            bytes[13] == 0x3A, bytes[16] == 0x3A,
            let year = number(bytes[0..<4]), let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
            let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]), let second = number(bytes[17..<19]),
            (1...12).contains(month), day >= 1, day <= days(in: month, of: year), hour <= 23, minute <= 59, second <= 59
        else { return false }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix(while: Bytes.isDigit)
            guard (1...9).contains(digits.count) else { return false }
            rest = rest.dropFirst(1 + digits.count)
        }
        return isOffset(Array(rest))
    }

    static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard digits.allSatisfy(Bytes.isDigit) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func isOffset(_ bytes: [UInt8]) -> Bool {
        if bytes.count == 1 { return bytes[0] | 0x20 == UInt8(ascii: "z") }
        guard bytes.count == 6, bytes[0] == UInt8(ascii: "+") || bytes[0] == UInt8(ascii: "-"), bytes[3] == 0x3A,
            let hours = number(bytes[1..<3]), let minutes = number(bytes[4..<6])
        else { return false }
        return hours <= 23 && minutes <= 59
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year.isMultiple(of: 4) && (!year.isMultiple(of: 100) || year.isMultiple(of: 400)) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}

extension TextRule {
    /// An hour and minute at which something begins, `00:00` to `23:59`.
    static let openingTime = TextRule { text in
        text == "24:00" ? "This must be a time of day from 00:00 to 23:59." : timeOfDay.fault(text)
    }
}
