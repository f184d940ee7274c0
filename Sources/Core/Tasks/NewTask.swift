/// A task about to be created.
package struct NewTask: Sendable {
    /// The source of the request's body.
    package enum Body: Sendable {
        /// A body that the app stored before.
        case stored(String)
        /// Bytes sent with the task.
        case bytes([UInt8], mediaType: String?, publicId: String)
        /// A file already below the data folder.
        case file(String, length: Int64, digest: String, publicId: String)
        /// Objects in the bucket of contents, to which other rows may refer.
        case objects([StoredObject], digest: String, mediaType: String?, publicId: String)
    }

    package var specification: TaskSpecification
    /// `scheme://host:port`, the scope of transfer limits.
    package var origin: String
    package var isSuspended: Bool
    package var body: Body?
    /// The progress that a resumed download starts with.
    package var progress: TaskProgress?
    /// The resume data that the task spends.
    package var resumeNonce: [UInt8]?
    /// The version of a set whose file or list the task fetches.
    package var setVersion: SetVersionID?
    /// The identity of the request beside the specification: the source and form of its body.
    package var fingerprint: [UInt8]
    /// The fingerprint that earlier versions stored for the same request, if it was another one.
    package var formerFingerprint: [UInt8]?
    /// Whether the request repeats that of an existing task, so that its body was not fetched.
    package var isRepetition = false

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

/// A task that was created, or found by its `clientTaskId`.
package struct CreatedTask: Sendable {
    package var task: TaskRecord
    package var isExisting: Bool

    package init(task: TaskRecord, isExisting: Bool) {
        self.task = task
        self.isExisting = isExisting
    }
}

/// An app's request for a task, whose body is yet to be fetched.
package struct TaskOrder: Sendable {
    package enum Body: Sendable, Hashable {
        /// A body that the app stored before.
        case stored(String)
        /// Bytes sent with the order.
        case bytes([UInt8], mediaType: String?)
        /// A file below one of the operator's roots.
        case file(root: String, path: String)
        /// The content of a finished download of the same session.
        case content(ofTask: Int64)
        /// An object in a bucket, fetched before the first attempt.
        case object(ObjectReference)
    }

    package var specification: TaskSpecification
    /// The parsed URL of its request, if it has been parsed.
    package var url: ParsedURL?
    package var isSuspended: Bool
    package var body: Body?
    /// The resume data of a cancelled download.
    package var resumeData: String?
    /// The completed task that this one retries.
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
