import Base
import Core

/// A resource of an origin under a path: bytes that depend only on a number and a version.
final class Resource: @unchecked Sendable {
    let number: Int
    let length: Int
    let origin: Int
    private(set) var version = 1
    private var contents: [Representation: [UInt8]] = [:]
    private var digests: [Representation: [UInt8]] = [:]
    /// The complete bodies of uploads.
    var received: [[UInt8]] = []
    /// A body without a length was cut.
    var mayBeShort = false
    /// How often its transfer may crash the program, if that is among the faults.
    var crashesLeft = Dice.extras.pick([2, 2, 100])
    let validator: Validator
    let acceptsRanges: Bool
    /// Whether it requires a password.
    let isGuarded: Bool
    /// The rules for the reuse of its responses.
    var reuse = Reuse()
    /// The bytes of each version of a list of other resources.
    private let document: ((_ version: Int) -> [UInt8])?
    /// The path of the next page of a list.
    let nextPage: String?
    /// When each digest was last sent or confirmed, in milliseconds of the run.
    private var servedAt: [[UInt8]: Int64] = [:]

    enum Validator { case etag, weak, date, none }

    struct Reuse {
        var cacheControl: String?
        var vary: String?

        var isNeverStored: Bool { cacheControl == "no-store" || vary == "*" }

        /// In milliseconds; 0 without explicit freshness.
        var freshness: Int64 {
            cacheControl?.firstRange(of: "max-age=").flatMap { Int64(cacheControl?[$0.upperBound...] ?? "") }
                .map { $0 * 1000 } ?? 0
        }
    }

    init(_ number: Int, length: Int, origin: Int, validator: Validator, acceptsRanges: Bool, isGuarded: Bool) {
        self.number = number
        self.length = length
        self.origin = origin
        self.validator = validator
        self.acceptsRanges = acceptsRanges
        self.isGuarded = isGuarded
        (document, nextPage) = (nil, nil)
    }

    /// A list of other resources.
    init(_ number: Int, origin: Int, nextPage: String? = nil, document: @escaping (_ version: Int) -> [UInt8]) {
        self.number = number
        self.origin = origin
        self.document = document
        self.nextPage = nextPage
        (length, validator, acceptsRanges, isGuarded) = (0, .etag, true, false)
    }

    var url: String { "http://o\(origin).test/r/\(number)" }

    func change() { version += 1 }

    /// The bytes of a version, which may differ with the request's field `X-A`.
    struct Representation: Hashable {
        var version: Int
        var variant = 0
    }

    func bytes(_ wanted: Representation) -> [UInt8] {
        if let known = contents[wanted] { return known }
        let seed = number &* 1009 &+ wanted.version &+ 500_009 &* wanted.variant
        let bytes =
            document?(wanted.version) ?? Self.bytes(seed: seed, count: length + (wanted.version - 1) * 17)
        contents[wanted] = bytes
        return bytes
    }

    func digest(_ wanted: Representation) -> [UInt8] {
        if let known = digests[wanted] { return known }
        let digest = Digest.of(bytes(wanted))
        digests[wanted] = digest
        return digest
    }

    /// The variant for a value of `X-A`.
    func variant(_ value: Int) -> Int { reuse.vary == "X-A" ? value : 0 }

    /// Whether a version for a value of `X-A` has these bytes.
    func has(digest: [UInt8], variant value: Int) -> Bool {
        (1...version).contains { self.digest(Representation(version: $0, variant: variant(value))) == digest }
    }

    func note(served wanted: Representation, at now: Int64) { servedAt[digest(wanted)] = now }

    func lastServed(_ digest: [UInt8]) -> Int64? { servedAt[digest] }

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
