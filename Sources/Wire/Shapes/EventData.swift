/// What the events say in their `data`, one shape a type.
///
/// Questions have ``AuthenticationChallenge`` and ``DelayedRequest``; `task.isWaitingForConnectivity` has none.
public enum EventData {}

extension EventData {
    /// Of `task.didCreate`.
    public struct DidCreate: Shape {
        public var kind = TaskKind()
        /// Where it goes.
        public var url = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("kind", &kind)
            members.member("url", &url)
        }
    }

    /// Of `task.didSendBodyData`.
    public struct DidSendBodyData: Shape {
        /// Bytes since the last such event.
        public var bytesSent: Int64 = 0
        /// Bytes so far.
        public var totalBytesSent: Int64 = 0
        /// Bytes in all, where that is known.
        public var totalBytesExpectedToSend: Int64?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("bytesSent", &bytesSent)
            members.member("totalBytesSent", &totalBytesSent)
            members.nullable("totalBytesExpectedToSend", &totalBytesExpectedToSend)
        }
    }

    /// Of `task.didWriteData`.
    public struct DidWriteData: Shape {
        /// Bytes since the last such event.
        public var bytesWritten: Int64 = 0
        /// Bytes so far.
        public var totalBytesWritten: Int64 = 0
        /// Bytes in all, where that is known.
        public var totalBytesExpectedToWrite: Int64?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("bytesWritten", &bytesWritten)
            members.member("totalBytesWritten", &totalBytesWritten)
            members.nullable("totalBytesExpectedToWrite", &totalBytesExpectedToWrite)
        }
    }

    /// Of `task.willRetry`.
    public struct WillRetry: Shape {
        /// The attempt that failed, from 1.
        public var attempt: Int64 = 0
        /// Why it failed; `nil` for a status.
        public var error: TaskError?
        public var nextAt = ""
        /// Where it goes on.
        public var offset: Int64 = 0

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("attempt", &attempt)
            members.nullable("error", &error)
            members.member("nextAt", &nextAt)
            members.member("offset", &offset)
        }
    }

    /// Of `task.didResumeAtOffset`.
    public struct DidResumeAtOffset: Shape {
        /// Where the download goes on; 0 for a restart.
        public var fileOffset: Int64 = 0
        /// Bytes in all, where that is known.
        public var expectedTotalBytes: Int64?
        /// Why it did not simply continue.
        public var cause = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("fileOffset", &fileOffset)
            members.nullable("expectedTotalBytes", &expectedTotalBytes)
            members.member("cause", &cause)
        }
    }

    /// Of `task.didFinishDownloading`.
    public struct DidFinishDownloading: Shape {
        public var contentURL = ""
        /// Bytes.
        public var length: Int64 = 0
        /// Of these bytes.
        public var digest = ContentDigest()
        /// The status of the response: from 400 on the content is what the server says of its refusal; `nil` where
        /// there was no response.
        public var statusCode: Int64?
        /// The name that the response suggests for the file, without a path; `nil` where none was stored.
        public var suggestedFilename: String?
        /// When the content is dropped; `nil` while that is open.
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

    /// Of `task.didComplete`.
    public struct DidComplete: Shape {
        public var outcome = TaskOutcome()
        public var error: TaskError?
        /// The last answer of the server.
        public var response: TaskResponse?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("outcome", &outcome)
            members.nullable("error", &error)
            members.nullable("response", &response)
        }
    }

    /// Of `session.didStall`.
    public struct DidStall: Shape {
        /// Running tasks of the session, none of which made progress.
        public var taskCount: Int64 = 0
        /// The time of the last progress.
        public var since = ""
        /// Why the last attempts of the tasks failed, at most ten, without repetitions.
        public var errors: [TaskError] = []

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("taskCount", &taskCount)
            members.member("since", &since)
            members.member("errors", &errors)
        }
    }

    /// Of `session.didFinishEvents`.
    public struct DidFinishEvents: Shape {
        /// The launch that was completed.
        public var launchId = ""

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.member("launchId", &launchId)
        }
    }

    /// Of `session.didBecomeInvalid`.
    public struct DidBecomeInvalid: Shape {
        /// Why, unless the app asked for it.
        public var error: TaskError?

        public init() {}

        public mutating func visit(_ members: inout some MemberVisitor) {
            members.nullable("error", &error)
        }
    }
}
