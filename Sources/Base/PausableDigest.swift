import CCrypto
package import Formats

/// A resumable digest, whose state can be exported, stored and imported by another process.
///
/// GnuTLS hides the state of its digests. Nettle, on which GnuTLS is based, exposes it as a plain struct.
///
/// - SeeAlso: FIPS 180-4 section 6.2 and RFC 1321 section 3: between two blocks, the words and the count are the state.
package struct PausableDigest: Sendable {
    private enum Context {
        case sha256(sha256_ctx)
        case sha512(sha512_ctx)
        case md5(md5_ctx)
    }

    private var context: Context

    package init(_ algorithm: DigestAlgorithm) {
        switch algorithm {
        case .sha256:
            var context = sha256_ctx()
            nettle_sha256_init(&context)
            self.context = .sha256(context)
        case .sha512:
            var context = sha512_ctx()
            nettle_sha512_init(&context)
            self.context = .sha512(context)
        case .md5:
            var context = md5_ctx()
            nettle_md5_init(&context)
            self.context = .md5(context)
        }
    }

    package var algorithm: DigestAlgorithm {
        switch context {
        case .sha256: .sha256
        case .sha512: .sha512
        case .md5: .md5
        }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) {
        let (start, count) = (bytes.assumingMemoryBound(to: UInt8.self).baseAddress, bytes.count)
        guard count > 0 else { return }
        switch context {
        case .sha256(var context):
            nettle_sha256_update(&context, count, start)
            self.context = .sha256(context)
        case .sha512(var context):
            nettle_sha512_update(&context, count, start)
            self.context = .sha512(context)
        case .md5(var context):
            nettle_md5_update(&context, count, start)
            self.context = .md5(context)
        }
    }

    /// The digest of all bytes so far. The computation continues.
    package var value: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: algorithm.length) { buffer, count in
            count = algorithm.length
            switch context {
            case .sha256(var context): nettle_sha256_digest(&context, count, buffer.baseAddress)
            case .sha512(var context): nettle_sha512_digest(&context, count, buffer.baseAddress)
            case .md5(var context): nettle_md5_digest(&context, count, buffer.baseAddress)
            }
        }
    }

    // MARK: Export and import

    /// The block length of all algorithms in bytes: a computation can be exported only after a multiple of it.
    package static let blockLength = 128

    /// The exported state: the words, then the count of blocks, each in big-endian order. `nil` inside a block.
    package var state: [UInt8]? {
        func bytes(
            _ words: some Any, _ count: UInt64, _ type: (some FixedWidthInteger).Type, _ index: UInt32
        ) -> [UInt8]? {
            guard index == 0 else { return nil }
            let all = withUnsafeBytes(of: words) { Self.swapped($0, type) }
            return all + Self.bytes(count)
        }
        return switch context {
        case .sha256(let context): bytes(context.state, context.count, UInt32.self, context.index)
        case .sha512(let context): bytes(context.state, context.count_low, UInt64.self, context.index)
        case .md5(let context): bytes(context.state, context.count, UInt32.self, context.index)
        }
    }

    /// Imports a ``state``; `nil` if it is not one of this algorithm.
    package init?(_ algorithm: DigestAlgorithm, state: [UInt8]) {
        self.init(algorithm)
        let (words, rest) = (Array(state.dropLast(8)), Array(state.suffix(8)))
        func take<Words, Word: FixedWidthInteger>(_ target: inout Words, _ type: Word.Type) -> Bool {
            withUnsafeMutableBytes(of: &target) { target in
                guard target.count == words.count, rest.count == 8 else { return false }
                target.copyBytes(from: words.withUnsafeBytes { Self.swapped($0, type) })
                return true
            }
        }
        let count = rest.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        switch context {
        case .sha256(var context):
            guard take(&context.state, UInt32.self) else { return nil }
            context.count = count
            self.context = .sha256(context)
        case .sha512(var context):
            guard take(&context.state, UInt64.self) else { return nil }
            context.count_low = count
            self.context = .sha512(context)
        case .md5(var context):
            guard take(&context.state, UInt32.self) else { return nil }
            context.count = count
            self.context = .md5(context)
        }
    }

    /// Converts words between the machine's byte order and big-endian.
    private static func swapped<Word: FixedWidthInteger>(_ bytes: UnsafeRawBufferPointer, _: Word.Type) -> [UInt8] {
        stride(from: 0, to: bytes.count, by: MemoryLayout<Word>.size).flatMap {
            Self.bytes(bytes.loadUnaligned(fromByteOffset: $0, as: Word.self))
        }
    }

    private static func bytes<Word: FixedWidthInteger>(_ word: Word) -> [UInt8] {
        withUnsafeBytes(of: word.bigEndian) { Array($0) }
    }
}
