/// Into which parts content of a length is cut for a multipart upload.
///
/// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
package struct PartPlan: Hashable, Sendable {
    /// Parts of one upload at most.
    package static let mostParts: Int64 = 10_000
    /// Bytes of one object at most: 5 TiB.
    package static let longestObject: Int64 = 5 << 40
    /// Bytes of a part, as long as they suffice.
    package static let usual: Int64 = 8 << 20

    /// The content's length, where it is known.
    package let expected: Int64?
    /// Bytes of each part but the last, or of the first where parts grow.
    private let partLength: Int64

    /// - Parameter expected: The content's length. Where it is not known parts grow (``length(ofPart:)``).
    package init(expected: Int64?) {
        self.expected = expected
        guard let expected else {
            partLength = Self.usual
            return
        }
        let least = max(0, expected - 1) / Self.mostParts + 1
        let mebibytes = (least - 1) / (1 << 20) + 1
        partLength = max(Self.usual, mebibytes << 20)
    }

    private var grows: Bool { expected == nil }

    /// Bytes of a part, counted from 1. Where the length is not known, the first 1,000 have 8 MiB, and each thousand after
    /// them twice those before, so that 10,000 parts hold more than 5 TiB.
    package func length(ofPart number: Int) -> Int64 {
        guard grows else { return partLength }
        return partLength << Int64(min(max(0, number - 1) / 1000, 9))
    }

    /// Where a part begins in the content.
    package func offset(ofPart number: Int) -> Int64 {
        guard grows else { return Int64(number - 1) * partLength }
        let whole = (number - 1) / 1000
        let before = (0..<min(whole, 10)).reduce(Int64(0)) { $0 + 1000 * length(ofPart: $1 * 1000 + 1) }
        return before + Int64((number - 1) % 1000) * length(ofPart: number)
    }
}
