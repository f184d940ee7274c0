import Base
import Core
import Formats

/// Digests of bytes that arrive in several requests. Their state can be exported after any byte.
struct RunningDigests {
    private var digests: [PausableDigest]
    /// Less than a block.
    private var rest: [UInt8] = []

    init(_ algorithms: some Sequence<DigestAlgorithm>) { digests = algorithms.map { PausableDigest($0) } }

    /// Imports exported digests; nil if they are not valid.
    init?(_ kept: DraftDigest) {
        guard let rest = [UInt8](hexadecimal: kept.rest) else { return nil }
        self.rest = rest
        digests = kept.states.compactMap { state in
            [UInt8](hexadecimal: state.state).flatMap { PausableDigest(state.algorithm, state: $0) }
        }
        guard digests.count == kept.states.count else { return nil }
    }

    mutating func update(_ bytes: [UInt8]) {
        let all = rest.isEmpty ? bytes : rest + bytes
        let count = all.count / PausableDigest.blockLength * PausableDigest.blockLength
        for index in digests.indices {
            all.withUnsafeBytes { digests[index].update(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        }
        rest = Array(all[count...])
    }

    /// The digests of all bytes so far.
    var values: [DigestAlgorithm: [UInt8]] {
        var ended = digests
        for index in ended.indices { rest.withUnsafeBytes { ended[index].update($0) } }
        return Dictionary(ended.map { ($0.algorithm, $0.value) }) { first, _ in first }
    }

    /// The state to store with a draft, beside the digests that its completion checks.
    func kept(expecting expected: [ContentDigest]) -> DraftDigest {
        DraftDigest {
            $0.expected = expected
            $0.states = digests.compactMap { digest in
                digest.state.map { MultipartUpload.DigestState(digest.algorithm, state: $0.hexadecimal) }
            }
            $0.rest = rest.hexadecimal
        }
    }
}
