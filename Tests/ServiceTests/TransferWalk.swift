import Base
import Buckets
import Core
import Files
import Formats
import TestSupport
import Testing

@testable import Service
@testable import Store
@testable import TransferEngine
@testable import Transfers

/// One transfer from its claim to its end, in an environment that responds at random.
struct TransferWalk {
    private var random: SeededRandom
    private var transfer: Transfer
    private var now = TransferTests.now
    private var next: UInt64 = 1
    /// Exchanges that were started and have not ended.
    private var running: Set<ExchangeID> = []
    private var stopped: Set<ExchangeID> = []
    /// Events that the environment still has to send.
    private var owed: [Transfer.Event] = []
    private var isOver = false
    private(set) var steps: [String] = []
    /// Stages and events that occurred.
    private(set) var met: Set<String> = []

    static let total: Int64 = 40 << 20

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        var progress = TaskProgress()
        if Bool.random(using: &random) {
            let point = ResumePoint {
                $0.url = TransferTests.url
                $0.entityTag = "\"v\""
                $0.totalLength = Self.total
                $0.offset = 3 << 20
            }
            progress.kept = .file(point, source: 0)
        }
        switch Int.random(in: 0..<5, using: &random) {
        case 0, 1:
            if Bool.random(using: &random) {
                progress.kept.keep(
                    SegmentRecord {
                        $0.total = Self.total
                        $0.held = [HeldRange(0, 3 << 20)]
                    })
            }
            transfer = try TransferTests.transfer(progress) {
                $0.segments = .count(4)
                $0.mirrors = ["https://b.example/x"]
            }
        case 2: transfer = try TransferTests.transfer(progress, hasContentsBucket: true)
        case 3:
            let body = BodyLocation(storage: .bytes(Array(repeating: 1, count: 10)), length: 10, digest: "")
            transfer = try TransferTests.transfer(kind: .upload, body: body)
        default:
            let policy = CachePolicy.allCases.randomElement(using: &random)
            transfer = try TransferTests.transfer(progress) { $0.request.cachePolicy = policy }
        }
    }

    mutating func run() throws {
        try feed(.begin)
        for _ in 0..<300 where !isOver { try step() }
        if !isOver { try feed(.stop(.decided)) }
        // After a stop the transfer ends by itself.
        for _ in 0..<300 where !isOver {
            if let exchange = anyRunning() {
                try feed(.ended(exchange, TransferTests.result(.stopped)))
            } else if owed.isEmpty {
                break
            } else {
                try feed(owed.removeFirst())
            }
        }
        #expect(isOver && running.isEmpty, "\(transfer.stage.word) after \(steps.suffix(20))")
    }

    private mutating func anyRunning() -> ExchangeID? {
        running.sorted { $0.rawValue < $1.rawValue }.randomElement(using: &random)
    }

    private mutating func step() throws {
        now = now + .milliseconds(Int64.random(in: 0..<500, using: &random))
        if !owed.isEmpty, running.isEmpty || Bool.random(using: &random) {
            return try feed(owed.remove(at: Int.random(in: 0..<owed.count, using: &random)))
        }
        if Int.random(in: 0..<60, using: &random) == 0 {
            return try feed(.stop([.decided, .interrupted, .outdated].randomElement(using: &random) ?? .decided))
        }
        // Without an exchange it waits for slots, or for a source that rests.
        guard let exchange = anyRunning() else { return try widen(proceeds: true) }
        switch Int.random(in: 0..<8, using: &random) {
        case 0: try feed(.informational(exchange, TransferTests.head(104, [("Location", "/u/1")])))
        case 1: try feed(.head(exchange, TransferTests.content(Self.total), judgement(of: exchange)))
        case 2: try feed(.durable(exchange, lastByte(of: exchange), nil))
        case 3 where transfer.writesObject && !stopped.contains(exchange):
            let part = ContentPart(number: 1, offset: 0, bytes: [1], plan: PartPlan(expected: Self.total))
            try feed(.part(exchange, part))
        case 4: try widen(proceeds: false)
        case 5: try feed(.wanted(Int64.random(in: 0..<Self.total, using: &random), positions: [:]))
        default: try feed(.ended(exchange, stopped.contains(exchange) ? TransferTests.result(.stopped) : end(exchange)))
        }
    }

    private func bytes(of exchange: ExchangeID) -> Range<Int64> {
        transfer.segmented?.connections[exchange]?.bytes ?? (transfer.attempt.resuming?.offset ?? 0)..<Self.total
    }

    private func lastByte(of exchange: ExchangeID) -> Int64 {
        transfer.segmented?.plan.segments[exchange.rawValue]?.end ?? bytes(of: exchange).upperBound
    }

    private func judgement(of exchange: ExchangeID) -> HeadJudgement {
        let offset = bytes(of: exchange).lowerBound
        return HeadJudgement(.keep(at: offset), transfer.specification.kind == .download ? .append(at: offset) : nil)
    }

    private mutating func end(_ exchange: ExchangeID) -> ExchangeResult {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return TransferTests.result(.failed(.reset))
        case 1: return TransferTests.result(.complete, TransferTests.head(503), .notADownload(status: 503))
        case 2:
            let location = [("Location", "https://c.example/y")]
            return TransferTests.result(.complete, TransferTests.head(307, location), .notADownload(status: 307))
        case 3 where transfer.specification.kind == .download:
            return TransferTests.result(.stopped, TransferTests.head(416), .askAgainFromZero(.validatorChanged))
        case 4: return TransferTests.result(.failed(.disk(errno: 5)))
        default:
            let length = lastByte(of: exchange)
            var result = TransferTests.result(
                .complete, TransferTests.content(Self.total), judgement(of: exchange).verdict,
                transfer.writesObject ? .parts(length: length) : .file(path: "", length: length), length: length)
            result.metrics.countOfRequestBodyBytesSent = 10
            return result
        }
    }

    // MARK: The environment

    private mutating func feed(_ event: Transfer.Event) throws {
        guard !isOver else { return }
        let exchange = ExchangeID(rawValue: next)
        next += 1
        if case .ended(let ended, _) = event { running.remove(ended) }
        met.insert("\(transfer.stage.word) \(event.word)")
        let effects = transfer.handle(event, in: TransferTests.world(exchange.rawValue, at: now))
        steps.append("\(event.word) → \(transfer.stage.word) \(effects.map(\.word).joined(separator: " "))")
        for effect in effects {
            #expect(!isOver, "\(effect.word) after the end: \(steps.suffix(20))")
            try carryOut(effect)
        }
        if isOver { return }
        #expect(running == Set(transfer.exchanges), "\(steps.suffix(20))")
        #expect(transfer.segmented != nil || running.count <= 1, "\(steps.suffix(20))")
    }

    private mutating func carryOut(_ effect: Transfer.Effect) throws {
        switch effect {
        case .start(let exchange): running.insert(exchange)
        case .stop(let exchange): stopped.insert(exchange)
        case .authorize: owed.append(.authorized(Access.Found()))
        case .consult:
            transfer.attempt.reuse = Reuse(key: CacheKey())
            let answers = [CacheAnswer.load(confirming: nil, leads: true), .follow, .fail, .gone]
            owed.append(.consulted(answers.randomElement(using: &random) ?? .gone))
        case .find: owed.append(.found(size: Bool.random(using: &random) ? Self.total : nil))
        case .widen(let proceeds): try widen(proceeds: proceeds)
        case .replace(_, let source):
            let count = running.count
            if Bool.random(using: &random) { try feed(.connect(source: source, isOwn: false, positions: [:])) }
            if running.count == count { try widen(proceeds: true) }
        case .read(let end, let isLast): read(to: end, isLast: isLast)
        case .readWhole(let length, _): read(to: length, isLast: true)
        case .endWriting:
            guard let exchange = transfer.exchange else { return }
            var finished = ObjectWriter.Finished(digests: [.sha256: [0xAA]])
            if Int.random(in: 0..<4, using: &random) == 0 { finished.fault = .unexpected("refused") }
            owed.append(.wrote(exchange, .finished(finished)))
        case .place, .completeObject, .settle, .ask: isOver = true
        default: break
        }
    }

    private mutating func read(to end: Int64, isLast: Bool) {
        let result: Result<Range<Int64>?, SystemError> =
            Int.random(in: 0..<10, using: &random) == 0 ? .failure(SystemError("pread", errno: 5)) : .success(nil)
        owed.append(
            .read(Transfer.Reading(result: result, position: end, digests: isLast ? [.sha256: [0xAA]] : [:])))
    }

    /// Grants slots to some sources.
    private mutating func widen(proceeds: Bool) throws {
        for source in transfer.segmented?.plan.sources(at: now) ?? [] where Bool.random(using: &random) {
            try feed(.connect(source: source, isOwn: false, positions: [:]))
        }
        if proceeds { try feed(.widened) }
    }
}

extension Transfer.Event {
    var word: String { String("\(self)".prefix { $0.isLetter }) }
}
