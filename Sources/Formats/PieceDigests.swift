/// The digests of consecutive pieces of a content, of equal length except for the last.
package struct PieceDigests: Shape {
    package var length: Int64 = 0
    package var algorithm = DigestAlgorithm.sha256
    /// In lower-case hex.
    package var values: [String] = []

    package init() {}

    package init(length: Int64, algorithm: DigestAlgorithm, values: [String]) {
        self.length = length
        self.algorithm = algorithm
        self.values = values
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("length", &length)
        members.member("algorithm", &algorithm)
        members.member("values", &values)
    }

    /// Whether a content of this length has this number of pieces.
    package func fits(_ total: Int64) -> Bool {
        guard length > 0, total > 0 else { return false }
        return (total - 1) / length + 1 == Int64(values.count)
    }
}
