import Base
import Core

/// What an origin has under a path: bytes that depend on a number and a version alone.
final class Resource: @unchecked Sendable {
    let number: Int
    let length: Int
    let origin: Int
    private(set) var version = 1
    private var contents: [Int: [UInt8]] = [:]
    private var digests: [Int: [UInt8]] = [:]
    /// Of uploads: the bodies that came whole.
    var received: [[UInt8]] = []
    /// A body without a length was cut.
    var mayBeShort = false
    let validator: Validator
    let acceptsRanges: Bool
    /// Requires a password.
    let isGuarded: Bool

    enum Validator { case etag, weak, date, none }

    init(_ number: Int, length: Int, origin: Int, validator: Validator, acceptsRanges: Bool, isGuarded: Bool) {
        self.number = number
        self.length = length
        self.origin = origin
        self.validator = validator
        self.acceptsRanges = acceptsRanges
        self.isGuarded = isGuarded
    }

    var url: String { "http://o\(origin).test/r/\(number)" }

    func change() { version += 1 }

    func bytes(_ version: Int) -> [UInt8] {
        if let known = contents[version] { return known }
        let bytes = Self.bytes(seed: number &* 1009 &+ version, count: length + (version - 1) * 17)
        contents[version] = bytes
        return bytes
    }

    func digest(_ version: Int) -> [UInt8] {
        if let known = digests[version] { return known }
        let digest = Digest.of(bytes(version))
        digests[version] = digest
        return digest
    }

    /// The version that has these bytes.
    func version(of digest: [UInt8]) -> Int? { (1...version).first { self.digest($0) == digest } }

    static func bytes(seed: Int, count: Int) -> [UInt8] {
        var state = UInt64(bitPattern: Int64(seed)) &* 0x9E37_79B9_7F4A_7C15 | 1
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
            for index in 0..<count {
                if index & 7 == 0 { state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407 }
                buffer[index] = UInt8(truncatingIfNeeded: state >> UInt64(8 * (index & 7)))
            }
            initialized = count
        }
    }
}
