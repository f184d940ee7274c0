import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

extension Transfer {
    /// What happens to a transfer.
    enum Event: Sendable {
        /// It has its place.
        case begin
        /// The size of the partial file in which segments were interrupted; nil where there is none.
        case found(size: Int64?)
        /// The credentials for the next request are read.
        case authorized(Access.Found)
        /// A fault of this machine keeps it from going on.
        case failed(LocalFault)
        /// A 1xx head.
        case informational(ExchangeID, ResponseHead)
        case head(ExchangeID, ResponseHead, HeadJudgement)
        /// The bytes up to the offset are on disk, with their digest where it is known.
        case durable(ExchangeID, Int64, [UInt8]?)
        case part(ExchangeID, ContentPart)
        case wrote(ExchangeID, ObjectWriter.News)
        case ended(ExchangeID, ExchangeResult)
        /// There is a place for one more connection to a source.
        ///
        /// - `positions`: How far the connections are, on disk or not.
        case connect(source: Int, isOwn: Bool, positions: [UInt64: Int64])
        /// All connections were begun for which there is a place.
        case widened
        /// The content was read up to a position.
        case read(Reading)
        case stop(Stop)
    }

    /// What came of reading the content once more.
    struct Reading: Sendable {
        /// A piece that is not what it should be, where there is one.
        let result: Result<Range<Int64>?, SystemError>
        let position: Int64
        /// Of the whole content, where all of it is read.
        let digests: [DigestAlgorithm: [UInt8]]
    }

    /// What is to be done, in this order.
    enum Effect: Sendable {
        /// Sends the request of the exchange.
        case start(ExchangeID)
        /// Has progress shown of a download that goes on in segments.
        case resumeSegments
        case stop(ExchangeID)
        case setMaximumUnrecorded(ExchangeID, Int64)
        /// Ends an exchange at an earlier byte.
        case shorten(ExchangeID, Int64)
        /// Lets an exchange go on behind an offset: at once, or when it is stored.
        case record(ExchangeID, Int64, isStored: Bool)
        /// Stores the progress with the next commit, with an event where bytes were resumed.
        case advance(Resumption? = nil)
        /// Takes over the partial file of a cancelled task.
        case adopt(file: String)
        /// Measures the partial file.
        case find
        case removePartialFile
        /// Removes all of the partial file but these ranges.
        case keep([Range<Int64>])
        /// Reads the credentials for the next request.
        case authorize
        case fetchBody
        /// Begins connections for which there are places; `proceeds` where the machine has to know when that is done.
        case widen(proceeds: Bool)
        /// Has the loop look for places when it has begun tasks.
        case widenLater
        /// Begins a connection in the place of one that ended.
        case replace(ExchangeID, source: Int)
        case show
        /// Reads the content up to a position; `isLast` where that is its end.
        case read(to: Int64, isLast: Bool)
        /// Reads a content that came in one request.
        case readWhole(length: Int64, checksPieces: Bool)
        case write(ContentPart)
        case endWriting(last: ContentPart?)
        /// The content is on its way to its place.
        case finalize
        /// Puts the content in its place.
        case place(Finish)
        /// Makes the object of parts that an attempt before has left.
        case completeObject
        /// Has the loop look again at a moment.
        case hold(until: Timestamp)
        /// Leaves an origin alone for a while.
        case pause(String, Duration)
        case tell(LiveEvent.Payload)
        case note(Note)
        /// Ends the transfer.
        case settle(Settlement)
        /// Ends the transfer with a question to the app.
        case ask(Question, TaskProgress, Settlement)
    }

    /// The end of a task whose content has to be put in its place.
    struct Finish: Sendable {
        let outcome: Outcome
        let taskResult: TaskResult
        let source: Judgement.ContentSource
        let result: ExchangeResult
        /// What was written of a content that becomes an object.
        let written: ObjectWriter.Finished?
        let bytesReceived: Int64
    }

    /// What the log is told, and what the loop remembers of origins.
    enum Note: Sendable {
        case started
        case willRetry(AttemptRecord?, at: Timestamp)
        /// The bucket of contents refused this node.
        case contentsFault(BucketFault)
        case egressDenied(host: String)
        case waitsForDisk(needed: Int64)
        case wrongPiece(at: Int64)
        case bucketFault(BucketFault)
        case bodyFault(LocalFault)
        /// An origin speaks a version of the draft for resumable uploads, or none.
        case speaks(ResumableUpload.Version, origin: String)
        case isSilent(ResumableUpload.Version, origin: String)
    }

    /// The moment of an event, and what the machine asks of its surroundings.
    struct Surroundings: Sendable {
        let now: Timestamp
        /// A number in `0..<1`.
        let jitter: Double
        /// The exchange that begins with this event, if one does.
        let exchange: ExchangeID
        /// Whether the app can answer a question: a webhook is set, or a client is attached.
        var canAsk = false
        /// The longest content that the empty disk could hold.
        let largestContent: Int64
        let uploadVersions: UploadVersions
    }

    /// Takes an event, and tells what is to be done. Events of exchanges that are over do nothing.
    mutating func handle(_ event: Event, in world: Surroundings) -> [Effect] {
        switch event {
        case .begin: begin(world)
        case .found(let size): restoreSegments(size, world)
        case .authorized(let found): start(with: found, world)
        case .failed(let fault): settle(fault, world)
        case .informational(let exchange, let head): note(informational: head, of: exchange)
        case .head(let exchange, let head, let judgement): note(head, judgement, of: exchange, world)
        case .durable(let exchange, let offset, let digest): note(durable: offset, digest, of: exchange)
        case .part(let exchange, let part): note(part, of: exchange)
        case .wrote(let exchange, let news): note(news, of: exchange, world)
        case .ended(let exchange, let result): end(exchange, result, world)
        case .connect(let source, let isOwn, let positions): connect(to: source, isOwn: isOwn, positions, world)
        case .widened: proceed(afterWidening: true, world)
        case .read(let reading): take(reading, world)
        case .stop(let stop): halt(stop, world)
        }
    }
}
