/// Interrupts transfers for apps that wait for their share of the slots.
///
/// An app that holds less than its share and has waited for too long gets the missing slots from the apps that hold the
/// most. No app loses slots of its share, so that two apps never take slots from each other in turns.
package struct Preemption: Sendable {
    /// The tasks that an app could start now if it had slots.
    package struct Demand: Hashable, Sendable {
        package var tasks: Int
        /// Whether all of them are of `background` sessions, which have a quarter of a share.
        package var isBackground: Bool

        package init(tasks: Int, isBackground: Bool = false) {
            self.tasks = tasks
            self.isBackground = isBackground
        }
    }

    /// A transfer that may be interrupted.
    package struct Candidate: Hashable, Sendable {
        package var task: Int64
        package var app: Int64
        /// Whether the transfer can resume where it stopped.
        package var isResumable: Bool
        package var startedAt: Timestamp

        package init(task: Int64, app: Int64, isResumable: Bool, startedAt: Timestamp) {
            self.task = task
            self.app = app
            self.isResumable = isResumable
            self.startedAt = startedAt
        }
    }

    private let patience: Duration
    /// When each app with less than its share began to wait.
    private var since: [Int64: Timestamp] = [:]

    /// - Parameter patience: The time that an app waits before transfers of others are interrupted.
    package init(patience: Duration) { self.patience = patience }

    /// When the next app will have waited for too long.
    package var next: Timestamp? { since.values.min().map { $0 + patience } }

    /// Handles the result of a complete round over the queue.
    ///
    /// - Parameters:
    ///   - waiting: Apps with tasks that lack only a slot.
    ///   - served: Apps that got a slot since the previous round: their wait restarts.
    ///   - held: The number of slots that each app holds.
    ///   - slots: All slots of the service.
    ///   - greed: See ``FairShare/mayTake(_:free:greed:)``.
    /// - Returns: The transfers to interrupt.
    package mutating func choose(
        from candidates: @autoclosure () -> [Candidate], waiting: [Int64: Demand], served: Set<Int64>,
        held: [Int64: Int], slots: Int, greed: Int, at now: Timestamp
    ) -> [Int64] {
        let share = Self.share(of: slots, apps: Set(held.keys).union(waiting.keys).count, greed: greed)
        let lacking = waiting.reduce(into: [Int64: Int]()) { lacking, entry in
            let own = entry.value.isBackground ? share / 4 : share
            let missing = min(own - (held[entry.key] ?? 0), entry.value.tasks)
            if missing > 0 { lacking[entry.key] = missing }
        }
        since = lacking.reduce(into: [:]) { $0[$1.key] = served.contains($1.key) ? now : since[$1.key] ?? now }
        let impatient = since.filter { $0.value + patience <= now }.keys
        for app in impatient { since[app] = now }
        let needed = impatient.reduce(0) { $0 + (lacking[$1] ?? 0) }
        return needed > 0 ? Self.victims(needed, of: candidates(), held: held, share: share) : []
    }

    /// The maximum of slots that each of `apps` apps can hold if each takes them one by one within the fairness limit.
    package static func share(of slots: Int, apps: Int, greed: Int) -> Int {
        var share = slots / max(1, apps)
        while share > 0, !FairShare.mayTake(share - 1, free: slots - (apps * share - 1), greed: greed) { share -= 1 }
        return share
    }

    /// Chooses from the app that holds the most: resumable transfers first, among them the last started first.
    private static func victims(
        _ count: Int, of candidates: [Candidate], held: [Int64: Int], share: Int
    ) -> [Int64] {
        var held = held
        var left = Dictionary(grouping: candidates, by: \.app).mapValues { candidates in
            candidates.sorted {
                ($0.isResumable ? 1 : 0, $0.startedAt, $0.task) < ($1.isResumable ? 1 : 0, $1.startedAt, $1.task)
            }
        }
        var victims: [Int64] = []
        while victims.count < count {
            let above = left.filter { !$0.value.isEmpty && (held[$0.key] ?? 0) > share }.keys
            guard let app = above.max(by: { (held[$0] ?? 0, $0) < (held[$1] ?? 0, $1) }),
                let victim = left[app]?.popLast()
            else { break }
            victims.append(victim.task)
            held[app, default: 0] -= 1
        }
        return victims
    }
}
