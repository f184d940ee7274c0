import Formats
import Testing

import struct TestSupport.SeededGenerator

@testable import Core

@Suite struct DigestFieldTests {
    /// SHA-256 of `{"hello": "world"}` and a newline, from RFC 9530 appendix B.
    static let text = "RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg="
    static let bytes: [UInt8] = Array(Base64.decodeFromField(Array(text.utf8)[...]) ?? [])

    @Test func `The dictionary is read and written`() throws {
        #expect(Self.bytes.count == 32 && Self.bytes[0] == 0x44 && Self.bytes[31] == 0x38)
        let parsed = try #require(DigestField.parse(["sha-256=:\(Self.text):"]))
        #expect(parsed == [.sha256: Self.bytes])
        #expect(DigestField.format(parsed) == "sha-256=:\(Self.text):")
        let both: [DigestAlgorithm: [UInt8]] = [.sha512: Array(repeating: 7, count: 64), .sha256: Self.bytes]
        #expect(DigestField.parse([DigestField.format(both)]) == both)
    }

    @Test(arguments: [
        ["sha-256=:\(text):;x=1"], ["md5=:AAAA:, sha-256=:\(text):"], ["md5=:AAAA:", " sha-256=:\(text): "],
        ["a=\"x,y\\\",\", sha-256=:\(text):"], ["unixsum=30637,sha-256=:\(text):"], ["flag, sha-256=:\(text):"],
        ["sha-256=:\(text.dropLast()):"], ["sha-256=:\(String(repeating: "A", count: 43)):, sha-256=:\(text):"],
    ])
    func `Unknown members are skipped`(_ values: [String]) {
        #expect(DigestField.parse(values) == [.sha256: Self.bytes])
    }

    @Test(arguments: [
        "sha-256", "sha-256=abc", "sha-256=:\(text)", "sha-256=:AAAA:", "sha-256=:\(text):x", "sha-256=:\(text):,",
        "sha-256=:\(text): x",
        "SHA-256=:\(text):", "sha-256=:!\(text.dropFirst()):", "=:\(text):", "sha-256=\"\(text)\"", ",", "a=\"x",
        "sha-512=:\(text):", "sha-256=:\(text)=:", "sha-256 =:\(text):",
    ])
    func `Malformed fields are refused`(_ value: String) {
        #expect(DigestField.parse([value]) == nil)
    }

    @Test func `An empty field has no digests`() {
        #expect(DigestField.parse([]) == [:])
        #expect(DigestField.parse([" "]) == [:])
        #expect(DigestField.format([:]) == "")
    }

    @Test func `Base64 of every length survives a round trip`() {
        var generator = SeededGenerator(state: 1)
        for length in 0..<70 {
            let bytes = (0..<length).map { _ in UInt8.random(in: 0...255, using: &generator) }
            #expect(Base64.decodeFromField(Array(Base64.encode(bytes).utf8)[...]) == bytes)
        }
        #expect(Base64.decodeFromField(Array("A".utf8)[...]) == nil)
        #expect(Base64.decodeFromField(Array("AA=".utf8)[...]) == nil)
    }
}
