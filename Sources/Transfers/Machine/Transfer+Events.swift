import Base
import Buckets
import Core
import Files
import Formats
import Store
import TransferEngine

extension Transfer {
    /// An event of a transfer. Large values are indirect, because events are passed on in arrays.
    enum Event: Sendable {
        /// The transfer has its slot.
        case begin
        /// The size of the partial file with interrupted segments; nil if the file does not exist.
        case found(size: Int64?)
        /// The credentials for the next request are read.
        case authorized(Access.Found)
        /// The store has decided how the task gets its content.
        case consulted(CacheAnswer)
        /// A fault of this machine prevents the next step.
        case failed(LocalFault)
        /// A 1xx head.
        case informational(ExchangeID, ResponseHead)
        case head(ExchangeID, ResponseHead, HeadJudgement)
        /// The bytes up to the offset are on disk, with their digest if it is known.
        case durable(ExchangeID, Int64, [UInt8]?)
        case part(ExchangeID, ContentPart)
        case wrote(ExchangeID, ObjectWriter.News)
        indirect case ended(ExchangeID, ExchangeResult)
        /// There is a slot for one more connection to a source.
        ///
        /// - `positions`: The offsets that the connections have reached, on disk or not.
        case connect(source: Int, isOwn: Bool, positions: [UInt64: Int64])
        /// All connections that could get a slot have begun.
        case widened
        /// The result of reading the content up to a position.
        case read(Reading)
        /// A reader waits for the byte at an offset; nil if the offset is unknown.
        case wanted(Int64?, positions: [UInt64: Int64])
        case stop(Stop)
    }

    /// The result of reading the content once more.
    struct Reading: Sendable {
        /// The piece whose digest is wrong, if there is one.
        let result: Result<Range<Int64>?, SystemError>
        let position: Int64
        /// Of the whole content, once all of it has been read.
        let digests: [DigestAlgorithm: [UInt8]]
    }

    /// An effect to run. Effects run in the order of their list.
    enum Effect: Sendable {
        /// Sends the request of the exchange.
        case start(ExchangeID)
        /// Shows the progress of a download that resumes in segments.
        case resumeSegments
        case stop(ExchangeID)
        case setMaximumUnrecorded(ExchangeID, Int64)
        /// Ends an exchange at an earlier byte.
        case shorten(ExchangeID, Int64)
        /// Lets an exchange continue beyond an offset: at once, or when the offset is stored.
        case record(ExchangeID, Int64, isStored: Bool)
        /// Stores the progress with the next commit, with an event if bytes were resumed.
        case advance(Resumption? = nil)
        /// Adopts the partial file of a cancelled task.
        case adopt(file: String)
        /// Restarts the download that may resume from the partial file, before this transfer overwrites the file.
        case withdrawPartialFile
        /// Measures the partial file.
        case find
        case removePartialFile
        /// Removes all of the partial file but these ranges.
        case keep([Range<Int64>])
        /// Reads the credentials for the next request.
        case authorize
        /// Asks the store whether a transfer is needed.
        case consult
        /// Tells the store that the response may not be reused.
        case forbidReuse
        case fetchBody
        /// Begins connections for which there are slots. With `proceeds`, the machine is notified when that is done.
        case widen(proceeds: Bool)
        /// Begins connections after the loop has begun the tasks that it claimed.
        case widenLater
        /// Begins a connection in the slot of one that ended.
        case replace(ExchangeID, source: Int)
        case show
        /// Publishes the readable bytes to readers: `nil` if there are none before the task is completed.
        indirect case arrived(ArrivingContent?, TaskResponse? = nil)
        /// Reads the content up to a position; `isLast` if that is its end.
        case read(to: Int64, isLast: Bool)
        /// Reads a content that one request has brought.
        case readWhole(length: Int64, checksPieces: Bool)
        case write(ContentPart)
        /// Lets readers read the content that is written into the bucket of contents.
        indirect case expose(TaskResponse)
        case endWriting(last: ContentPart?)
        /// Marks the content as being put in its place.
        case finalize
        /// Puts the content in its place.
        indirect case place(Finish)
        /// Completes the object from the parts that an earlier attempt has uploaded.
        case completeObject
        /// Wakes the loop at a time.
        case hold(until: Timestamp)
        /// Sends no requests to an origin for a duration.
        case pause(String, Duration)
        indirect case tell(LiveEvent.Payload)
        indirect case note(Note)
        /// Ends the transfer.
        indirect case settle(Settlement)
        /// Ends the transfer with a question to the app.
        indirect case ask(Question, TaskProgress, Settlement)
    }

    /// The end of a task whose content still has to be put in its place.
    struct Finish: Sendable {
        let outcome: Outcome
        let taskResult: TaskResult
        let source: Judgement.ContentSource
        /// The last exchange; nil if there was none.
        let result: ExchangeResult?
        /// The outcome of writing a content that becomes an object.
        var written: ObjectWriter.Finished?
        var bytesReceived: Int64 = 0
        /// The shareable parts of the response.
        var sharing: Sharing?
        /// The verdict for this task if the content is of use to others only.
        var verdict: Settlement.Verdict?
    }

    /// Facts for the log, and facts about origins that the loop remembers.
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
        /// An origin supports a version of the draft for resumable uploads, or none.
        case speaks(ResumableUpload.Version, origin: String)
        case isSilent(ResumableUpload.Version, origin: String)
    }

    /// The time of an event, and the facts that the machine needs besides.
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
        /// The origins that have asked for a pause.
        var pauses = OriginPauses()
    }

    /// Handles an event and returns its effects. Events of exchanges that have ended have none.
    mutating func handle(_ event: Event, in world: Surroundings) -> [Effect] {
        switch event {
        case .begin: begin(world)
        case .found(let size): restoreSegments(size, world)
        case .authorized(let found): start(with: found, world)
        case .consulted(let answer): take(answer, world)
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
        case .wanted(let offset, let positions): want(offset, positions)
        case .stop(let stop): halt(stop)
        }
    }
}
