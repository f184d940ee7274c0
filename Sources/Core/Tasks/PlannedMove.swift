/// A whole content that is about to be moved to its task's destination. Stored before the move, so that a start after a
/// crash recognises the file there as its own.
package struct PlannedMove: Hashable, Sendable, Codable {
    package var destination: Destination
    /// Where a copy lies on its way to another filesystem, relative to the destination's root.
    package var temporaryPath: String
    /// Of the content, in bytes.
    package var length: Int64
    package var digest: ContentDigest
    /// Of the file that takes the destination's name.
    package var inode: UInt64
    /// How the task ends with it.
    package var result: TaskResult

    package init(
        destination: Destination, temporaryPath: String, length: Int64, digest: ContentDigest, inode: UInt64,
        result: TaskResult
    ) {
        self.destination = destination
        self.temporaryPath = temporaryPath
        self.length = length
        self.digest = digest
        self.inode = inode
        self.result = result
    }
}
