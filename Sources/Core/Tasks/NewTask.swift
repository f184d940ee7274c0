/// A task about to be created.
package struct NewTask: Sendable {
    /// Where the bytes of the request's body come from.
    package enum Body: Sendable {
        /// A body that the app stored before.
        case stored(String)
        /// Bytes that came with the task.
        case bytes([UInt8], mediaType: String?, publicId: String)
        /// A file already below the data folder.
        case file(String, length: Int64, digest: String, publicId: String)
        /// Objects in the bucket of contents, which others may name as well.
        case objects([StoredObject], digest: String, mediaType: String?, publicId: String)
    }

    package var specification: TaskSpecification
    /// `scheme://host:port`, by which transfers are limited.
    package var origin: String
    package var isSuspended: Bool
    package var body: Body?
    /// What a resumed download already has.
    package var progress: TaskProgress?
    /// The resume data that the task uses up.
    package var resumeNonce: [UInt8]?
    /// What identifies the request beside the specification, such as a digest of its body.
    package var fingerprint: [UInt8]

    package init(
        specification: TaskSpecification, origin: String, isSuspended: Bool, body: Body? = nil,
        progress: TaskProgress? = nil, fingerprint: [UInt8] = []
    ) {
        self.specification = specification
        self.origin = origin
        self.isSuspended = isSuspended
        self.body = body
        self.progress = progress
        self.fingerprint = fingerprint
    }
}

/// A task as it was created, or found under its `clientTaskId`.
package struct CreatedTask: Sendable {
    package var task: TaskRecord
    package var isExisting: Bool

    package init(task: TaskRecord, isExisting: Bool) {
        self.task = task
        self.isExisting = isExisting
    }
}

/// A task as the app orders it: its body is still to be fetched from where the order says.
package struct TaskOrder: Sendable {
    package enum Body: Sendable, Hashable {
        /// A body that the app stored before.
        case stored(String)
        /// Bytes that came with the order.
        case bytes([UInt8], mediaType: String?)
        /// A file below one of the operator's roots.
        case file(root: String, path: String)
        /// The content of a finished download of the same session.
        case content(ofTask: Int64)
        /// An object in a bucket, fetched before the first attempt.
        case object(ObjectReference)
    }

    package var specification: TaskSpecification
    /// That of its request, where it has been parsed.
    package var url: ParsedURL?
    package var isSuspended: Bool
    package var body: Body?
    /// What a cancelled download left to go on with.
    package var resumeData: String?
    /// The completed task of which this is the retry.
    package var retried: TaskRecord?

    package init(
        specification: TaskSpecification, isSuspended: Bool, body: Body? = nil, resumeData: String? = nil
    ) {
        self.specification = specification
        self.isSuspended = isSuspended
        self.body = body
        self.resumeData = resumeData
    }
}
