package import Formats

/// A planned move of a content to its task's destination. Stored before the move, so that a start after a crash
/// recognises the file there.
package struct PlannedMove: Shape {
    package var destination = Destination()
    /// The path of a copy for another filesystem, relative to the destination's root.
    package var temporaryPath = ""
    /// The length of the content in bytes.
    package var length: Int64 = 0
    package var digest = ContentDigest()
    /// The inode of the file that gets the destination's name.
    package var inode: UInt64 = 0
    /// Whether the content is being copied to the destination's filesystem, so that the task may be cancelled.
    package var isCopying = false
    /// Whether the task's request has changed, so that it does not end with this content.
    package var isOutdated = false
    /// The result of the task after the move.
    package var result = TaskResult()

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("destination", &destination)
        members.member("temporaryPath", &temporaryPath)
        members.member("length", &length)
        members.member("digest", &digest)
        members.member("inode", &signedInode)
        members.sparse("isCopying", &isCopying, unless: false)
        members.sparse("isOutdated", &isOutdated, unless: false)
        members.member("result", &result)
    }

    /// JSON numbers are signed, but some filesystems use all 64 bits.
    private var signedInode: Int64 {
        get { Int64(bitPattern: inode) }
        set { inode = UInt64(bitPattern: newValue) }
    }
}
