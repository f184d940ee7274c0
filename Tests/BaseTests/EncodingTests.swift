import Testing

@testable import Base

@Suite struct EncodingTests {
    @Test func `Hexadecimal is written in lower case and read in either case`() {
        #expect([UInt8]([0x00, 0xFF, 0xA5]).hexadecimal == "00ffa5")
        #expect([UInt8](hexadecimal: "00FFa5") == [0x00, 0xFF, 0xA5])
        #expect([UInt8](hexadecimal: "") == [])
    }

    @Test(arguments: ["0", "0g", "0x00", " 00", "00 ", "é0", "-1"])
    func `Invalid hexadecimal is refused`(_ text: String) {
        #expect([UInt8](hexadecimal: text) == nil)
    }

    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func `Base64 follows the vectors of RFC 4648`(_ plain: String, _ encoded: String) {
        let unpadded = String(encoded.prefix { $0 != "=" })
        #expect(Array(plain.utf8).base64 == encoded)
        #expect([UInt8](base64: encoded) == Array(plain.utf8))
        #expect(Array(plain.utf8).base64URL == unpadded)
        #expect([UInt8](base64URL: unpadded) == Array(plain.utf8))
    }

    @Test func `The two alphabets differ in their last two digits`() {
        #expect([UInt8]([0xFB, 0xEF, 0xFF]).base64 == "++//")
        #expect([UInt8]([0xFB, 0xEF, 0xFF]).base64URL == "--__")
        #expect([UInt8](base64: "--__") == nil)
        #expect([UInt8](base64URL: "++//") == nil)
    }

    @Test(arguments: ["Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Zm8=Zm8=", "=Zg=", "Zm 9v", "Zm9v\n", "====", "Zé=="])
    func `Non-canonical Base64 is refused`(_ text: String) {
        #expect([UInt8](base64: text) == nil)
    }

    @Test(arguments: ["Z", "Zh", "Zm9", "Zg==", "Zm9v "])
    func `Non-canonical Base64url is refused`(_ text: String) {
        #expect([UInt8](base64URL: text) == nil)
    }

    @Test func `Base62 has one width for each number of bytes`() {
        #expect([UInt8](repeating: 0, count: 16).base62 == String(repeating: "0", count: 22))
        #expect([UInt8](repeating: 255, count: 16).base62 == "7n42DGM5Tflk9n8mt7Fhc7")
        #expect([UInt8](repeating: 255, count: 32).base62.utf8.count == 43)
        #expect([UInt8]([61]).base62 == "0z")
        #expect([UInt8]([255]).base62 == "47")
    }

    @Test func `An identifier is its prefix and twenty-two random characters`() {
        let first = Identifier.make(prefix: "lnch_")
        #expect(first.hasPrefix("lnch_") && first.utf8.count == 27)
        #expect(first != Identifier.make(prefix: "lnch_"))
    }
}
