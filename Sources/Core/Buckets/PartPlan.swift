/// The division of a content into the parts of a multipart upload.
///
/// - SeeAlso: docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html
package struct PartPlan: Hashable, Sendable {
    /// The maximum number of parts of one upload.
    package static let mostParts: Int64 = 10_000
    /// The maximum size of an object: 5 TiB.
    package static let longestObject: Int64 = 5 << 40
    /// The usual length of a part.
    package static let usual: Int64 = 8 << 20

    /// The content's length, if it is known.
    package let expected: Int64?
    /// The length of each part but the last; of the first parts if lengths grow.
    private let partLength: Int64

    /// - Parameter expected: The content's length. If it is unknown, parts grow (``length(ofPart:)``).
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

    /// The length of a part, counted from 1. If the content's length is unknown, the first 1,000 parts have 8 MiB and
    /// each further thousand has twice the length, so that 10,000 parts hold more than 5 TiB.
    package func length(ofPart number: Int) -> Int64 {
        guard grows else { return partLength }
        return partLength << Int64(min(max(0, number - 1) / 1000, 9))
    }

    /// The offset of a part in the content.
    package func offset(ofPart number: Int) -> Int64 {
        guard grows else { return Int64(number - 1) * partLength }
        let whole = (number - 1) / 1000
        let before = (0..<min(whole, 10)).reduce(Int64(0)) { $0 + 1000 * length(ofPart: $1 * 1000 + 1) }
        return before + Int64((number - 1) % 1000) * length(ofPart: number)
    }
}
