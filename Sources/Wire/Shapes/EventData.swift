/// What the events say in their `data`, one shape a type.
///
/// Questions have ``AuthenticationChallenge`` and ``DelayedRequest``; `task.isWaitingForConnectivity` has none.
public enum EventData {}

extension EventData {
    /// Of `task.didCreate`.
    public struct DidCreate: Sendable, Hashable, JSONWritable, JSONReadable {
        /// What the task does.
        public var kind: TaskKind
        /// Where it goes.
        public var url: String

        /// Makes one.
        public init(kind: TaskKind, url: String) {
            self.kind = kind
            self.url = url
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            kind = reader.word("kind")
            url = reader.string("url")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("kind", kind)
                writer.member("url", url)
            }
        }
    }

    /// Of `task.didSendBodyData`.
    public struct DidSendBodyData: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Bytes since the last such event.
        public var bytesSent: Int64
        /// Bytes so far.
        public var totalBytesSent: Int64
        /// Bytes in all, where that is known.
        public var totalBytesExpectedToSend: Int64?

        /// Makes one.
        public init(bytesSent: Int64, totalBytesSent: Int64, totalBytesExpectedToSend: Int64? = nil) {
            self.bytesSent = bytesSent
            self.totalBytesSent = totalBytesSent
            self.totalBytesExpectedToSend = totalBytesExpectedToSend
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            bytesSent = reader.integer("bytesSent")
            totalBytesSent = reader.integer("totalBytesSent")
            totalBytesExpectedToSend = reader.optionalInteger("totalBytesExpectedToSend")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("bytesSent", bytesSent)
                writer.member("totalBytesSent", totalBytesSent)
                writer.member("totalBytesExpectedToSend", totalBytesExpectedToSend)
            }
        }
    }

    /// Of `task.didWriteData`.
    public struct DidWriteData: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Bytes since the last such event.
        public var bytesWritten: Int64
        /// Bytes so far.
        public var totalBytesWritten: Int64
        /// Bytes in all, where that is known.
        public var totalBytesExpectedToWrite: Int64?

        /// Makes one.
        public init(bytesWritten: Int64, totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64? = nil) {
            self.bytesWritten = bytesWritten
            self.totalBytesWritten = totalBytesWritten
            self.totalBytesExpectedToWrite = totalBytesExpectedToWrite
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            bytesWritten = reader.integer("bytesWritten")
            totalBytesWritten = reader.integer("totalBytesWritten")
            totalBytesExpectedToWrite = reader.optionalInteger("totalBytesExpectedToWrite")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("bytesWritten", bytesWritten)
                writer.member("totalBytesWritten", totalBytesWritten)
                writer.member("totalBytesExpectedToWrite", totalBytesExpectedToWrite)
            }
        }
    }

    /// Of `task.willRetry`.
    public struct WillRetry: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The attempt that failed, from 1.
        public var attempt: Int64
        /// Why it failed; `nil` for a status.
        public var error: TaskError?
        /// When the next one begins.
        public var nextAt: String
        /// Where it goes on.
        public var offset: Int64

        /// Makes one.
        public init(attempt: Int64, error: TaskError? = nil, nextAt: String, offset: Int64) {
            self.attempt = attempt
            self.error = error
            self.nextAt = nextAt
            self.offset = offset
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            attempt = reader.integer("attempt")
            error = reader.optionalObject("error")
            nextAt = reader.string("nextAt")
            offset = reader.integer("offset")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("attempt", attempt)
                writer.member("error", error)
                writer.member("nextAt", nextAt)
                writer.member("offset", offset)
            }
        }
    }

    /// Of `task.didResumeAtOffset`.
    public struct DidResumeAtOffset: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Where the download goes on; 0 for a restart.
        public var fileOffset: Int64
        /// Bytes in all, where that is known.
        public var expectedTotalBytes: Int64?
        /// Why it did not simply continue.
        public var cause: String

        /// Makes one.
        public init(fileOffset: Int64, expectedTotalBytes: Int64? = nil, cause: String) {
            self.fileOffset = fileOffset
            self.expectedTotalBytes = expectedTotalBytes
            self.cause = cause
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            fileOffset = reader.integer("fileOffset")
            expectedTotalBytes = reader.optionalInteger("expectedTotalBytes")
            cause = reader.string("cause")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("fileOffset", fileOffset)
                writer.member("expectedTotalBytes", expectedTotalBytes)
                writer.member("cause", cause)
            }
        }
    }

    /// Of `task.didFinishDownloading`.
    public struct DidFinishDownloading: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Where the content is read.
        public var contentURL: String
        /// Bytes.
        public var length: Int64
        /// Of these bytes.
        public var digest: ContentDigest
        /// When the content is dropped; `nil` while that is open.
        public var expiresAt: String?

        /// Makes one.
        public init(contentURL: String, length: Int64, digest: ContentDigest, expiresAt: String? = nil) {
            self.contentURL = contentURL
            self.length = length
            self.digest = digest
            self.expiresAt = expiresAt
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            contentURL = reader.string("contentURL")
            length = reader.integer("length")
            digest = reader.object("digest")
            expiresAt = reader.optionalString("expiresAt")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("contentURL", contentURL)
                writer.member("length", length)
                writer.member("digest", digest)
                writer.member("expiresAt", expiresAt)
            }
        }
    }

    /// Of `task.didComplete`.
    public struct DidComplete: Sendable, Hashable, JSONWritable, JSONReadable {
        /// How the task ended.
        public var outcome: TaskOutcome
        /// Why it failed.
        public var error: TaskError?
        /// The last answer of the server.
        public var response: TaskResponse?

        /// Makes one.
        public init(outcome: TaskOutcome, error: TaskError? = nil, response: TaskResponse? = nil) {
            self.outcome = outcome
            self.error = error
            self.response = response
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            outcome = reader.word("outcome")
            error = reader.optionalObject("error")
            response = reader.optionalObject("response")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { writer in
                writer.member("outcome", outcome)
                writer.member("error", error)
                writer.member("response", response)
            }
        }
    }

    /// Of `session.didFinishEvents`.
    public struct DidFinishEvents: Sendable, Hashable, JSONWritable, JSONReadable {
        /// The launch that was completed.
        public var launchId: String

        /// Makes one.
        public init(launchId: String) {
            self.launchId = launchId
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            launchId = reader.string("launchId")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { $0.member("launchId", launchId) }
        }
    }

    /// Of `session.didBecomeInvalid`.
    public struct DidBecomeInvalid: Sendable, Hashable, JSONWritable, JSONReadable {
        /// Why, unless the app asked for it.
        public var error: TaskError?

        /// Makes one.
        public init(error: TaskError? = nil) {
            self.error = error
        }

        /// Reads the object.
        public init(reading reader: inout ObjectReader) {
            error = reader.optionalObject("error")
        }

        /// Writes an object.
        public func write(to writer: inout JSONWriter) {
            writer.object { $0.member("error", error) }
        }
    }

}
