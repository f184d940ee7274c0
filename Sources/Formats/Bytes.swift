/// Classes of bytes.
package enum Bytes {
    package static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    package static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) }

    package static func isIdentifier(_ byte: UInt8) -> Bool {
        isDigit(byte) || isLetter(byte) || "._-~:@+".utf8.contains(byte)
    }

    /// A character of a token (RFC 9110 section 5.6.2).
    package static func isToken(_ byte: UInt8) -> Bool {
        isDigit(byte) || isLetter(byte) || "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}
