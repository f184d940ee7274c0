import Base
import Formats
import Testing

struct PausableDigestTests {
    @Test(arguments: DigestAlgorithm.allCases)
    func `A digest in steps equals the digest in one step`(_ algorithm: DigestAlgorithm) {
        for count in [0, 1, 63, 64, 127, 128, 1000, 100_000] {
            let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
            var digest = PausableDigest(algorithm)
            bytes.withUnsafeBytes { all in
                for start in stride(from: 0, to: count, by: 777) {
                    digest.update(UnsafeRawBufferPointer(rebasing: all[start..<min(count, start + 777)]))
                }
            }
            #expect(digest.value == Digest.of(bytes, algorithm))
            #expect(digest.value == digest.value)
        }
    }

    @Test(arguments: DigestAlgorithm.allCases) func `Another process can resume a stored digest`(
        _ algorithm: DigestAlgorithm
    ) throws {
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let pause = 41 * PausableDigest.blockLength
        var first = PausableDigest(algorithm)
        bytes[..<pause].withUnsafeBytes { first.update($0) }
        let state = try #require(first.state)
        var second = try #require(PausableDigest(algorithm, state: state))
        bytes[pause...].withUnsafeBytes { second.update($0) }
        #expect(second.value == Digest.of(bytes, algorithm))
        #expect(second.algorithm == algorithm)
    }

    @Test func `A digest has no state within a block, and refuses any other state`() {
        var digest = PausableDigest(.sha256)
        [1 as UInt8].withUnsafeBytes { digest.update($0) }
        #expect(digest.state == nil)
        #expect(PausableDigest(.sha256, state: []) == nil)
        #expect(PausableDigest(.sha256, state: Array(repeating: 0, count: 39)) == nil)
        #expect(PausableDigest(.sha512, state: PausableDigest(.sha256).state ?? []) == nil)
    }
}
