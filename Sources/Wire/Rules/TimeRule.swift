extension TextRule {
    /// A time by RFC 3339 section 5.6: date, `T`, time, optional fraction, `Z` or an offset.
    public static let timestamp = TextRule { text in
        TimeText.parse(text) == nil ? "This must be a time as in RFC 3339, such as 2026-12-01T00:00:00Z." : nil
    }

    /// An hour and minute of a day, `00:00` to `24:00`.
    public static let timeOfDay = TextRule { text in
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":"), (bytes[..<2] + bytes[3...]).allSatisfy(Bytes.isDigit),
            let hour = Int(text.prefix(2)), let minute = Int(text.suffix(2)), minute <= 59,
            hour <= 23 || (hour == 24 && minute == 0)
        else { return "This must be a time of day from 00:00 to 24:00." }
        return nil
    }

    /// The hour and minute of a beginning, `00:00` to `23:59`.
    static let openingTime = TextRule { text in
        text == "24:00" ? "This must be a time of day from 00:00 to 23:59." : timeOfDay.fault(text)
    }
}
