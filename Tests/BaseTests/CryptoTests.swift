import Formats
import Testing

@testable import Base

private func bytes(_ hexadecimal: String) -> [UInt8] { [UInt8](hexadecimal: hexadecimal) ?? [] }

@Suite struct CryptoTests {
    @Test(arguments: [
        (DigestAlgorithm.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (
            .sha512, "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
        (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
    ])
    func `Digests follow the published vectors`(_ algorithm: DigestAlgorithm, _ text: String, _ expected: String) {
        #expect(Digest.of(Array(text.utf8), algorithm).hexadecimal == expected)
    }

    /// The results of `git hash-object`.
    @Test(arguments: [
        ("", "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"), ("hello\n", "ce013625030ba8dba906f756967f9e9ca394464a"),
        (String(repeating: "a", count: 1000), "a50be72b20f0e3f078d252e8e56b11b4bec67509"),
    ])
    func `Bytes are named as Git names them`(_ text: String, _ expected: String) {
        let bytes = Array(text.utf8)
        var digest = GitBlobDigest(length: Int64(bytes.count))
        for start in stride(from: 0, to: bytes.count, by: 7) {
            digest.update(Array(bytes[start..<min(start + 7, bytes.count)]))
        }
        #expect(digest.finish().hexadecimal == expected)
    }

    @Test(arguments: [
        (
            String(repeating: "0b", count: 20), "4869205468657265",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        ),
        (
            "4a656665", "7768617420646f2079612077616e7420666f72206e6f7468696e673f",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        ),
        (
            String(repeating: "aa", count: 20), String(repeating: "dd", count: 50),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"
        ),
        (
            String(repeating: "aa", count: 131),
            "54657374205573696e67204c6172676572205468616e20426c6f636b2d53697a65204b6579202d2048617368204b6579204669727374",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        ),
        ("", "", "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
    ])
    func `HMAC follows the vectors of RFC 4231`(_ key: String, _ message: String, _ expected: String) {
        #expect(HMAC.sha256(key: bytes(key), message: bytes(message)).hexadecimal == expected)
    }

    @Test func `A webhook is signed as the reference libraries sign it`() {
        let key = [UInt8](base64: "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw") ?? []
        let message = "msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330.{\"test\": 2432232314}"
        let signature = HMAC.sha256(key: key, message: Array(message.utf8)).base64
        #expect(signature == "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    @Test func `Secrets are compared in full`() {
        #expect(ConstantTime.equal([], []))
        #expect(ConstantTime.equal([1, 2, 3], [1, 2, 3]))
        #expect(!ConstantTime.equal([1, 2, 3], [1, 2, 4]))
        #expect(!ConstantTime.equal([1, 2, 3], [1, 2]))
        #expect(!ConstantTime.equal(Array("e\u{301}".utf8), Array("\u{e9}".utf8)))
    }

    @Test func `Random bytes have the requested length and differ`() {
        #expect(RandomBytes.make(0).isEmpty)
        #expect(RandomBytes.make(32).count == 32)
        #expect(RandomBytes.make(32) != RandomBytes.make(32))
    }

    // NIST's GCM test cases 13, 14 and 16.
    @Test(arguments: [
        (
            String(repeating: "00", count: 32), String(repeating: "00", count: 12), "", "",
            "530f8afbc74536b9a963b4f1c4cb738b"
        ),
        (
            String(repeating: "00", count: 32), String(repeating: "00", count: 12), "",
            String(repeating: "00", count: 16),
            "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"
        ),
        (
            "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
            "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525"
                + "b16aedf5aa0de657ba637b39",
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838"
                + "c5f61e6393ba7a0abcc9f662" + "76fc6ece0f4e1768cddf8853bb2d551b"
        ),
    ])
    func `AES-256-GCM follows the vectors of NIST`(
        _ key: String, _ nonce: String, _ associated: String, _ plaintext: String, _ expected: String
    ) {
        let cipher = Cipher(key: bytes(key))
        let sealed = cipher.encrypt(bytes(plaintext), nonce: bytes(nonce), associated: bytes(associated))
        #expect(sealed.hexadecimal == expected)
        let opened = cipher.decrypt(sealed, nonce: bytes(nonce), associated: bytes(associated))
        #expect(opened == bytes(plaintext))
    }
}
