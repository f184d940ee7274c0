package import Formats

/// A whole content that is about to be moved to its task's destination. Stored before the move, so that a start after a
/// crash recognises the file there as its own.
package struct PlannedMove: Shape {
    package var destination = Destination()
    /// Where a copy lies on its way to another filesystem, relative to the destination's root.
    package var temporaryPath = ""
    /// Of the content, in bytes.
    package var length: Int64 = 0
    package var digest = ContentDigest()
    /// Of the file that takes the destination's name.
    package var inode: UInt64 = 0
    /// Whether the content is still being copied to the destination's filesystem, so that the task may be cancelled.
    package var isCopying = false
    /// Whether the task has another request by now, so that it does not end with this content.
    package var isOutdated = false
    /// How the task ends with it.
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

    /// The numbers of JSON have a sign; some filesystems use all 64 bits.
    private var signedInode: Int64 {
        get { Int64(bitPattern: inode) }
        set { inode = UInt64(bitPattern: newValue) }
    }
}
