import Base

/// The expected duration of disk work.
package enum DiskWorkLength: Sendable {
    /// One short call: a sync, a rename, a few bytes.
    case short
    /// One of many steps, as of the digest of a whole file.
    case long
}

/// The order of disk work. Pure.
///
/// Short work goes first, but one thread is left for long work, so that it progresses. Long work has at most half of
/// the threads, so that syncs never wait for long work only. Within each length owners take turns, whatever their
/// backlog. The work of one owner is done in order of arrival.
struct DiskTurns<Work> {
    private var short = OwnerTurns<Work>()
    private var long = OwnerTurns<Work>()
    private var longUnderWay = 0
    private let threads: Int

    init(threads: Int) { self.threads = threads }

    mutating func add(_ work: Work, _ length: DiskWorkLength, for owner: Int64) {
        switch length {
        case .short: short.add(work, for: owner)
        case .long: long.add(work, for: owner)
        }
    }

    /// The next work; `nil` if the thread has to wait.
    mutating func next() -> (work: Work, length: DiskWorkLength, owner: Int64)? {
        let goesOn = longUnderWay > 0 || threads == 1
        if !goesOn || short.isEmpty, longUnderWay < max(1, threads / 2), let (work, owner) = long.next() {
            longUnderWay += 1
            return (work, .long, owner)
        }
        return short.next().map { ($0.work, .short, $0.owner) }
    }

    /// Records the end of a step.
    mutating func end(_ length: DiskWorkLength) { if length == .long { longUnderWay -= 1 } }

    var isEmpty: Bool { short.isEmpty && long.isEmpty }
}
