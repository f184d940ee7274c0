package import Formats

/// The data of `set.didPublish`.
package struct SetPublication: Shape {
    package enum Cause: String, Word, CaseIterable {
        /// Each file of a new version was fetched.
        case completed
        /// A kept version was made current again.
        case switched
    }

    package var name = ""
    package var version = ""
    package var versionId = ""
    package var files: Int64 = 0
    package var bytes: Int64 = 0
    package var cause = Cause.completed

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.member("files", &files)
        members.member("bytes", &bytes)
        members.member("cause", &cause)
    }
}

/// The data of `set.didFail`.
package struct SetFailures: Shape {
    package var name = ""
    package var version = ""
    package var versionId = ""
    package var failures: [SetFailure] = []

    package init() {}

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.member("name", &name)
        members.member("version", &version)
        members.member("versionId", &versionId)
        members.member("failures", &failures)
    }
}

/// The reason why a version failed.
package struct SetFailure: Shape {
    /// `nil` if the list of files could not be made, or the files not be published.
    package var path: String?
    /// The number of the file's task in the version's session.
    package var task: Int64?
    package var detail = ""

    package init() {}

    package init(path: String?, task: Int64? = nil, detail: String) {
        self.path = path
        self.task = task
        self.detail = detail
    }

    package mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("path", &path)
        members.optional("task", &task)
        members.member("detail", &detail)
    }
}
