package import Core
import Formats
import SQL

/// What a claimed task asks before its first request.
package struct CacheQuestion: Sendable {
    package var task: TaskID
    package var key: CacheKey
    /// The header fields of the request.
    package var headers: HTTPFields
    package var policy: CachePolicy

    package init(task: TaskID, key: CacheKey, headers: HTTPFields, policy: CachePolicy) {
        self.task = task
        self.key = key
        self.headers = headers
        self.policy = policy
    }

    fileprivate var isStrict: Bool { policy == .useProtocolCachePolicy }
}

package enum CacheAnswer: Sendable {
    /// The task transfers, and asks the origin to confirm `stored` if there is one.
    ///
    /// - `leads`: Whether other tasks may wait for its transfer.
    case load(confirming: StoredResponse?, leads: Bool)
    case use(StoredResponse, CacheStatus)
    /// The task has been released: it waits for another one's transfer.
    case follow
    /// The policy forbids a transfer.
    case fail
    /// The task has ended, or is suspended.
    case gone
}

/// Names a key, or a request, of an app in the store.
private struct Selector: Hashable {
    let app: AppID
    let mark: [UInt8]

    var values: [(any SQLBindable)?] { [app.rawValue, mark] }
}

/// The rows that decide about questions, read ahead, and the flights that begin in the same transaction.
private struct CacheReading {
    /// The flights that the tasks lead or follow.
    var flights: [Int64: Flight] = [:]
    /// The responses that ended them.
    var results: [Int64: StoredResponse] = [:]
    /// The responses of a key, the newest first.
    var stored: [Selector: [StoredResponse]] = [:]
    /// The flights with a leader.
    var led: [Selector: Flight] = [:]
    /// The numbers of new flights.
    var numbers: ArraySlice<Int64> = []
}

extension Store.Cache {
    /// The questions that one commit answers: each may read up to 64 KiB of every response of its key.
    package static let questionsAtOnce = 64

    /// Decides how claimed tasks get their contents.
    ///
    /// - Returns: The answers, in the order of the questions.
    package func consult(
        _ questions: [CacheQuestion], at now: Timestamp
    ) async throws -> (answers: [CacheAnswer], aftermath: Aftermath) {
        try await transact(at: now) { transaction in
            try transaction.preread(questions.map(\.task))
            let asked = try questions.map { question in
                let live = try transaction.live(question.task)
                return (question: question, live: live.flatMap { self.isClaimedHere($0) ? $0 : nil })
            }
            var reading = try self.read(asked, transaction)
            return try asked.map { question, live in
                guard let live else { return CacheAnswer.gone }
                return try self.answer(question, live, &reading, transaction)
            }
        }
    }

    private func isClaimedHere(_ live: LiveTask) -> Bool {
        live.life.phase == .active && (live.node == nil || live.node == node)
    }

    /// Reads what the answers depend on. Costs few round trips, whatever the number of questions.
    private func read(
        _ asked: [(question: CacheQuestion, live: LiveTask?)], _ transaction: Transaction
    ) throws -> CacheReading {
        let db = transaction.db
        let own = Array(Set(asked.compactMap { $0.live?.flight }))
        var (keys, requests): (Set<Selector>, Set<Selector>) = ([], [])
        for case (let question, let live?) in asked {
            let app = try transaction.session(live.session).app
            keys.insert(selector(key: question.key, app))
            requests.insert(selector(of: question, app))
        }
        let (entries, selectors) = (Array(policies.cacheCapacity > 0 ? keys : []), Array(requests))
        let flights = try Flight.ask(own, db)
        let led = try Flight.askLed(selectors.map(\.values), db)
        let stored = try askStored(entries.map(\.values), db)
        var reading = CacheReading()
        for flight in try flights.get().joined() { reading.flights[flight.id] = flight }
        for (selector, flights) in zip(selectors, try led.get()) { reading.led[selector] = flights.first }
        for (key, responses) in zip(entries, try stored.get()) { reading.stored[key] = responses.compactMap { $0 } }
        let results = reading.flights.values.compactMap(\.result)
        for case let response? in try askResponses(results, db).get().joined() {
            reading.results[response.row] = response
        }
        let unled = selectors.count - reading.led.count
        if unled > 0 { reading.numbers = try db.newNumbers(unled, of: "flight")[...] }
        return reading
    }

    private func answer(
        _ question: CacheQuestion, _ live: LiveTask, _ reading: inout CacheReading, _ transaction: Transaction
    ) throws -> CacheAnswer {
        let db = transaction.db
        let app = try transaction.session(live.session).app
        let selector = selector(of: question, app)
        let own = live.flight.flatMap { reading.flights[$0] }
        var (leads, isAlone) = (own?.leader == live.id, false)
        if leads, let own, own.selector != selector.mark {
            // The task presents another identity than in an earlier attempt.
            let isFirst = reading.led[selector] == nil
            try divideFlight(of: live, as: isFirst ? selector.mark : nil, transaction)
            for changed in [Selector(app: app, mark: own.selector), selector] {
                reading.led[changed] = try Flight.askLed([changed.values], db).get()[0].first
            }
        } else if let own, !leads {
            let mayShare = own.isReusable || !question.isStrict
            if mayShare, let result = own.result.flatMap({ reading.results[$0] }) { return .use(result, .collapsed) }
            // The flight was of no use to this follower, which fetches for itself.
            isAlone = !mayShare || own.result != nil
            try leaveFlight(live, transaction)
        }
        let responses = reading.stored[self.selector(key: question.key, app)] ?? []
        let found = responses.first { $0.cached.matches(question.headers) }
        let decision = CacheDecision.decide(
            question.policy, found?.cached, for: question.headers, at: transaction.now)
        if decision == .use, let found {
            try touch(cached: found.row, transaction)
            return .use(found, .hit)
        }
        if !leads, !isAlone, let current = reading.led[selector] {
            if current.isReusable || !question.isStrict {
                try db.execute(
                    "UPDATE live SET flight = ?2, is_strict = ?3 WHERE task = ?1", live.id.rawValue, current.id,
                    question.isStrict)
                try store.tasks.move(live, .follow, letsGo: true, transaction)
                return .follow
            }
            isAlone = true
        }
        if decision == .fail { return .fail }
        if !leads, !isAlone, let id = reading.numbers.popFirst() {
            try db.execute(
                "INSERT INTO flight (id, app, selector, leader) VALUES (?1, ?2, ?3, ?4)", id, app.rawValue,
                selector.mark, live.id.rawValue)
            try db.execute("UPDATE live SET flight = ?2 WHERE task = ?1", live.id.rawValue, id)
            reading.led[selector] = Flight(id: id, selector: selector.mark, leader: live.id)
            leads = true
        }
        // A weak validator says that the meaning is the same, not that the bytes are: too little for a file of a set.
        if case .revalidate = decision, live.setFetch == nil || found?.cached.hasStrongValidator == true {
            return .load(confirming: found, leads: leads)
        }
        return .load(confirming: nil, leads: leads)
    }

    private func selector(key: CacheKey, _ app: AppID) -> Selector { Selector(app: app, mark: mark(key)) }

    /// Requests are the same if all their fields are: `Vary` is not known before the response.
    private func selector(of question: CacheQuestion, _ app: AppID) -> Selector {
        let fields = HTTPFields(question.headers.sortedByName)
        return Selector(app: app, mark: documents.sealer.mark(question.key.bytesAtRest + fields.bytesAtRest))
    }
}
