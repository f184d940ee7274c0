import Core

/// The events of a session as its clients have read them, and the order that they must have.
struct EventLog {
    private(set) var last: Int64 = 0
    private(set) var outcomes: [Int64: Outcome] = [:]
    private var furthest: [Int64: EventKind] = [:]
    private(set) var isInvalid = false
    private(set) var hasGaps = false
    private(set) var finishedLaunches: Set<String> = []
    private(set) var openQuestions: [String] = []

    /// Takes a page that was read after ``last``.
    ///
    /// - Returns: What is wrong with it.
    mutating func take(_ page: EventPage, _ trace: Trace) -> String? {
        for event in page.events {
            guard event.seq == last + 1 else { return "G1: the event \(event.seq) follows \(last)." }
            if isInvalid { return "G7: \(event.kind) follows didBecomeInvalid." }
            last = event.seq
            trace.met("event \(event.kind.rawValue)")
            if let task = event.taskIdentifier, let fault = take(event, of: task) { return fault }
            switch event.payload {
            case .question(let question): openQuestions.append(question.questionId)
            case .finishedEvents(let launch): finishedLaunches.insert(launch)
            case .becameInvalid: isInvalid = true
            default: break
            }
        }
        if page.lastSeq < last { return "The session's last event is \(page.lastSeq), and \(last) was read." }
        return nil
    }

    private mutating func take(_ event: EventRecord, of task: Int64) -> String? {
        let before = furthest[task]
        if before == .didComplete { return "G4: \(event.kind) of task \(task) follows its didComplete." }
        switch event.kind {
        case .didFinishDownloading:
            if before == .didFinishDownloading || before == .didFinishCollectingMetrics {
                return "G3: didFinishDownloading of task \(task) follows \(before?.rawValue ?? "")."
            }
        case .didFinishCollectingMetrics:
            if before == .didFinishCollectingMetrics { return "G3: task \(task) has two metrics." }
        case .didComplete:
            if before != .didFinishCollectingMetrics { return "G3: didComplete of task \(task) without its metrics." }
            if case .completed(let outcome, _) = event.payload { outcomes[task] = outcome }
        default:
            if before == .didFinishDownloading || before == .didFinishCollectingMetrics {
                return "G3: \(event.kind) of task \(task) follows \(before?.rawValue ?? "")."
            }
        }
        furthest[task] = event.kind
        return nil
    }

    /// Events that were acknowledged are gone. Which tasks ended with them is unknown.
    mutating func skip(to seq: Int64) {
        last = max(last, seq)
        hasGaps = true
    }

    mutating func takeQuestion() -> String? { openQuestions.popLast() }
    mutating func giveBack(_ question: String) { openQuestions.append(question) }
}
