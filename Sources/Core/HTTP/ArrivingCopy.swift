package import Formats

/// Blocks of an unfinished content that the node with its file has copied into the bucket of contents, one object each,
/// for readers at other nodes.
package struct ArrivingCopy: Shape {
    /// The number of blocks that are copied from the one with a wanted byte on.
    static let blocksAhead = 32
    /// The maximum length of a field of the response.
    private static let longestField = 256

    package var task: Int64 = 0
    /// The version of the bytes.
    package var version: Int64 = 0
    /// The length of the whole content, if the origin announced it.
    package var total: Int64?
    /// The objects' keys begin with it.
    package var key = ""
    package var copied = SegmentRecord()
    /// The `Content-Type` of the origin's response.
    package var mediaType: String?
    package var filename: String?

    package init() {}

    package init(of task: TaskID, version: Int64, total: Int64?, key: String, _ response: TaskResponse?) {
        self.task = task.rawValue
        self.version = version
        self.total = total
        self.key = key
        copied = SegmentRecord(total: total ?? .max)
        mediaType = (response?.headers["Content-Type"] ?? response?.mimeType).flatMap(Self.short)
        filename = response?.suggestedFilename.flatMap(Self.short)
    }

    private static func short(_ field: String) -> String? { field.utf8.count <= longestField ? field : nil }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("task", &task)
        members.member("version", &version)
        members.optional("total", &total)
        members.member("key", &key)
        members.member("copied", &copied)
        members.optional("mediaType", &mediaType)
        members.optional("filename", &filename)
    }

    // MARK: Blocks

    /// The offset from which on no byte is copied. Origins and readers send any number.
    private var limit: Int64 { min(copied.total, PartPlan.longestObject) }

    /// Blocks of a content of unknown length do not grow.
    private var plan: PartPlan { PartPlan(expected: total == nil ? 0 : limit) }

    /// The number of the block with a byte, counted from 1.
    private func number(at offset: Int64) -> Int { Int(offset / plan.length(ofPart: 1)) + 1 }

    private func range(of number: Int) -> Range<Int64> {
        let start = min(plan.offset(ofPart: number), limit)
        return start..<min(start + plan.length(ofPart: number), limit)
    }

    /// The key of the object with a block.
    package func key(of block: Range<Int64>) -> String {
        MultipartUpload.key(ofPart: number(at: block.lowerBound), of: key)
    }

    /// The next block to copy: of those that are readable as a whole, the one that the readers need first.
    ///
    /// - Parameters:
    ///   - offsets: Of the bytes that readers wait for.
    ///   - end: Returns the end of the readable bytes from an offset on.
    package func next<Fault>(
        for offsets: [Int64], _ end: (Int64) throws(Fault) -> Int64
    ) throws(Fault) -> Range<Int64>? {
        for distance in 0..<Self.blocksAhead {
            for block in blocks(at: offsets, plus: distance) where try end(block.lowerBound) >= block.upperBound {
                return block
            }
        }
        return nil
    }

    /// The starts of the missing blocks with these bytes.
    package func missing(for offsets: [Int64]) -> [Int64] { blocks(at: offsets, plus: 0).map(\.lowerBound) }

    /// Missing blocks at a distance from those with the bytes at the offsets.
    private func blocks(at offsets: [Int64], plus distance: Int) -> [Range<Int64>] {
        offsets.filter { (0..<limit).contains($0) }.map { range(of: number(at: $0) + distance) }
            .filter { !$0.isEmpty && !has($0) }
    }

    private func has(_ block: Range<Int64>) -> Bool {
        copied.held.contains { $0.offset <= block.lowerBound && block.upperBound <= $0.end }
    }

    package mutating func add(_ block: Range<Int64>) { copied.insert(HeldRange(block.lowerBound, block.upperBound)) }

    // MARK: At other nodes

    /// The bytes that can be read from the objects. Objects of missing blocks are listed, but not readable.
    package var content: ArrivingContent {
        let objects = (0..<number(at: max(0, copied.end - 1))).map { index in
            let block = range(of: index + 1)
            return StoredObject(key: self.key(of: block), length: Int64(block.count))
        }
        return ArrivingContent(
            version: version, total: total, copied.ranges, in: copied.held.isEmpty ? [] : objects)
    }

    /// The origin's response, as far as readers receive it.
    package var response: TaskResponse {
        var response = TaskResponse()
        if let mediaType { response.headers.append("Content-Type", mediaType) }
        response.suggestedFilename = filename
        return response
    }
}
