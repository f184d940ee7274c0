/// The `data` of events, one shape for each type.
///
/// Questions have ``AuthenticationChallenge`` and ``DelayedRequest``; `task.isWaitingForConnectivity` has none.
public enum EventData {}

extension EventData {
    /// The data of `task.didCreate`.
    public struct DidCreate: Shape {
        public var kind = TaskKind()
        /// The URL of the task.
        public var url = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("kind", &kind)
            members.member("url", &url)
        }
    }

    /// The data of `task.didSendBodyData`.
    public struct DidSendBodyData: Shape {
        /// Bytes since the last such event.
        public var bytesSent: Int64 = 0
        /// Bytes in total so far.
        public var totalBytesSent: Int64 = 0
        /// The expected number of bytes, if known.
        public var totalBytesExpectedToSend: Int64?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("bytesSent", &bytesSent)
            members.member("totalBytesSent", &totalBytesSent)
            members.nullable("totalBytesExpectedToSend", &totalBytesExpectedToSend)
        }
    }

    /// The data of `task.didWriteData`.
    public struct DidWriteData: Shape {
        /// Bytes since the last such event.
        public var bytesWritten: Int64 = 0
        /// Bytes in total so far.
        public var totalBytesWritten: Int64 = 0
        /// The expected number of bytes, if known.
        public var totalBytesExpectedToWrite: Int64?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("bytesWritten", &bytesWritten)
            members.member("totalBytesWritten", &totalBytesWritten)
            members.nullable("totalBytesExpectedToWrite", &totalBytesExpectedToWrite)
        }
    }

    /// The data of `task.willRetry`.
    public struct WillRetry: Shape {
        /// The attempt that failed, from 1.
        public var attempt: Int64 = 0
        /// The error; `nil` for a status.
        public var error: TaskError?
        public var nextAt = ""
        /// The offset at which the next attempt resumes.
        public var offset: Int64 = 0

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("attempt", &attempt)
            members.nullable("error", &error)
            members.member("nextAt", &nextAt)
            members.member("offset", &offset)
        }
    }

    /// The data of `task.didResumeAtOffset`.
    public struct DidResumeAtOffset: Shape {
        /// The offset at which the download resumes; 0 for a restart.
        public var fileOffset: Int64 = 0
        /// The expected number of bytes, if known.
        public var expectedTotalBytes: Int64?
        /// The reason for a restart.
        public var cause = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("fileOffset", &fileOffset)
            members.nullable("expectedTotalBytes", &expectedTotalBytes)
            members.member("cause", &cause)
        }
    }

    /// The data of `task.didFinishDownloading`.
    public struct DidFinishDownloading: Shape {
        public var contentURL = ""
        /// The length in bytes.
        public var length: Int64 = 0
        /// The digest of these bytes.
        public var digest = ContentDigest()
        /// The status of the response; from 400 on the content is the server's error page. `nil` if there was no
        /// response.
        public var statusCode: Int64?
        /// The file name that the response suggests, without a path; `nil` if none was stored.
        public var suggestedFilename: String?
        /// The time at which the content is deleted; `nil` while it is unknown.
        public var expiresAt: String?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("contentURL", &contentURL)
            members.member("length", &length)
            members.member("digest", &digest)
            members.nullable("statusCode", &statusCode)
            members.nullable("suggestedFilename", &suggestedFilename)
            members.nullable("expiresAt", &expiresAt)
        }
    }

    /// The data of `task.didComplete`.
    public struct DidComplete: Shape {
        public var outcome = TaskOutcome()
        public var error: TaskError?
        /// The server's last response.
        public var response: TaskResponse?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("outcome", &outcome)
            members.nullable("error", &error)
            members.nullable("response", &response)
        }
    }

    /// The data of `session.didStall`.
    public struct DidStall: Shape {
        /// The number of running tasks, none of which made progress.
        public var taskCount: Int64 = 0
        /// The time of the last progress.
        public var since = ""
        /// The errors of the tasks' last attempts, at most ten, without repetitions.
        public var errors: [TaskError] = []

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("taskCount", &taskCount)
            members.member("since", &since)
            members.member("errors", &errors)
        }
    }

    /// The data of `set.didPublish`.
    public struct DidPublish: Shape {
        /// The reason why a version became current.
        public struct Cause: WireName {
            public let rawValue: String
            public init(rawValue: String) { self.rawValue = rawValue }
            /// Each file of a new version was fetched.
            public static let completed: Self = "completed"
            /// The app switched to a kept version.
            public static let switched: Self = "switched"
            public static let known: [Self] = [.completed, .switched]
        }

        /// The name of the set.
        public var name = ""
        public var version = ""
        public var versionId = ""
        /// The number of files.
        public var files: Int64 = 0
        /// The bytes of all files.
        public var bytes: Int64 = 0
        public var manifestURL = ""
        public var cause = Cause()

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("name", &name)
            members.member("version", &version)
            members.member("versionId", &versionId)
            members.member("files", &files)
            members.member("bytes", &bytes)
            members.member("manifestURL", &manifestURL)
            members.member("cause", &cause)
        }
    }

    /// The data of `set.didFail`.
    public struct DidFail: Shape {
        /// The name of the set.
        public var name = ""
        public var version = ""
        public var versionId = ""
        /// The first 100.
        public var failures: [SetFailure] = []

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("name", &name)
            members.member("version", &version)
            members.member("versionId", &versionId)
            members.member("failures", &failures)
        }
    }

    /// The data of `session.didFinishEvents`.
    public struct DidFinishEvents: Shape {
        /// The launch that was completed.
        public var launchId = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
        }
    }

    /// The data of `session.didBecomeInvalid`.
    public struct DidBecomeInvalid: Shape {
        /// The reason, unless the app invalidated the session.
        public var error: TaskError?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.nullable("error", &error)
        }
    }
}
