extension [UInt8] {
    /// The bytes as one number in base 62 (`0-9A-Za-z`), most significant digit first.
    ///
    /// The width depends on the number of bytes alone: 22 digits for 16 bytes, 43 for 32.
    package var base62: String {
        let alphabet = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)
        // log2(62) is 5.9541963…: the least number of digits that holds every value of this many bytes.
        let width = (count * 8 * 10_000 + 59_540) / 59_541
        var number = self
        var digits: [UInt8] = []
        for _ in 0..<width {
            var remainder = 0
            for index in number.indices {
                let dividend = remainder << 8 | Int(number[index])
                number[index] = UInt8(dividend / 62)
                remainder = dividend % 62
            }
            digits.append(alphabet[remainder])
        }
        return String(decoding: digits.reversed(), as: UTF8.self)
    }
}
