import Base

/// How long a piece of work for the disk may take.
package enum DiskWorkLength: Sendable {
    /// One call that ends soon: a sync, a rename, a few bytes.
    case short
    /// A step of many, such as those of a digest of a whole file.
    case long
}

/// Which piece of work a disk thread does next. Pure.
///
/// Short work goes first, but leaves long work one thread, so that this goes on; long work never has more than half of
/// the threads, so that those that sync are never all busy with it. Within each length owners take turns, however much
/// they have waiting; an owner's own work goes in order of arrival.
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

    /// What to do next; nil where a thread has to wait.
    mutating func next() -> (work: Work, length: DiskWorkLength, owner: Int64)? {
        let goesOn = longUnderWay > 0 || threads == 1
        if !goesOn || short.isEmpty, longUnderWay < max(1, threads / 2), let (work, owner) = long.next() {
            longUnderWay += 1
            return (work, .long, owner)
        }
        return short.next().map { ($0.work, .short, $0.owner) }
    }

    /// A piece of work is done.
    mutating func end(_ length: DiskWorkLength) { if length == .long { longUnderWay -= 1 } }

    var isEmpty: Bool { short.isEmpty && long.isEmpty }
}
