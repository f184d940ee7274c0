import Base
import Glibc

/// Bytes that are computed from a seed and an offset, so that a test need not keep the expected bytes.
///
/// Offsets that a test is likely to confuse have different bytes: each group of eight is SplitMix64 of its index.
package enum Content {
    /// The bytes at `range` of the content of `seed`.
    package static func bytes(seed: UInt64, range: Range<Int>) -> [UInt8] {
        // Whole words, truncated at the ends: without optimization each byte is expensive.
        let first = range.lowerBound / 8
        let words = (range.upperBound + 7) / 8 - first
        let bytes = [UInt8](unsafeUninitializedCapacity: 8 * max(0, words)) { buffer, count in
            let raw = UnsafeMutableRawPointer(buffer.baseAddress)
            var (offset, index) = (0, UInt64(first))
            while offset < buffer.count, let raw {
                raw.storeBytes(of: word(seed: seed, index: index), toByteOffset: offset, as: UInt64.self)
                offset &+= 8
                index &+= 1
            }
            count = offset
        }
        let skipped = range.lowerBound - 8 * first
        return skipped == 0 && bytes.count == range.count
            ? bytes : Array(bytes[skipped..<skipped + range.count])
    }

    /// The first `length` bytes of the content of `seed`.
    package static func bytes(seed: UInt64, length: Int) -> [UInt8] { bytes(seed: seed, range: 0..<length) }

    /// The SHA-256 of the first `length` bytes, in lower-case hex.
    package static func sha256(seed: UInt64, length: Int) -> String {
        let digest = Digest()
        var offset = 0
        while offset < length {
            let end = min(length, offset + 1 << 16)
            digest.update(bytes(seed: seed, range: offset..<end))
            offset = end
        }
        return hex(digest.finish())
    }

    /// The SHA-256 of `bytes`, in lower-case hex.
    package static func sha256(of bytes: [UInt8]) -> String { hex(Digest.of(bytes)) }

    /// Bytes in lower-case hex.
    package static func hex(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func word(seed: UInt64, index: UInt64) -> UInt64 {
        var z = seed &* 0xD1B5_4A32_D192_ED03 &+ (index &+ 1) &* 0x9E37_79B9_7F4A_7C15
        z = (z ^ (z &>> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z &>> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z &>> 31)
    }
}

/// The same as the standard library's, which compares byte by byte without optimization.
package func == (left: [UInt8], right: [UInt8]) -> Bool {
    left.count == right.count
        && left.withUnsafeBytes { left in
            right.withUnsafeBytes { right in
                guard let one = left.baseAddress, let other = right.baseAddress else { return true }
                return memcmp(one, other, left.count) == 0
            }
        }
}

/// Many bytes that are cheap to compute, even without optimization: a repeated mebibyte, each time with its number at
/// the start.
package struct LargeContent: Sendable {
    package let length: Int
    private let block: [UInt8]
    private static let blockLength = 1 << 20

    package init(seed: UInt64, length: Int) {
        self.length = length
        block = Content.bytes(seed: seed, length: Self.blockLength)
    }

    package func bytes(_ range: Range<Int>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(range.count)
        var position = range.lowerBound
        while position < range.upperBound {
            let (number, start) = (position / Self.blockLength, position % Self.blockLength)
            let count = min(Self.blockLength - start, range.upperBound - position)
            bytes += block[start..<start + count]
            for index in start..<max(start, min(8, start + count)) {
                bytes[bytes.count - count + index - start] = UInt8(truncatingIfNeeded: (number + 1) >> (8 * index))
            }
            position += count
        }
        return bytes
    }

    /// The pieces in order.
    private var pieces: some Sequence<[UInt8]> {
        stride(from: 0, to: length, by: Self.blockLength).lazy.map {
            bytes($0..<min(length, $0 + Self.blockLength))
        }
    }

    /// The SHA-256 in lower-case hex.
    package var sha256: String {
        let digest = Digest()
        for piece in pieces { digest.update(piece) }
        return Content.hex(digest.finish())
    }

    /// Writes all bytes to a file.
    package func write(to folder: TemporaryFolder, _ name: String) {
        folder.write([], to: name)
        for piece in pieces { folder.append(piece, to: name) }
    }
}

/// A random number generator with a seed, so that a failing run can be repeated.
package struct SeededRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
