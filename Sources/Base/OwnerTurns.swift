/// A queue in which owners take turns, whatever their backlog; the work of one owner is in order of arrival. Pure.
package struct OwnerTurns<Work> {
    private var waiting: [Int64: Queue] = [:]
    /// The owners with work, the next first.
    private var owners = OwnerTurns<Int64>.Queue()
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { waiting.isEmpty }

    package mutating func add(_ work: Work, for owner: Int64) {
        if waiting[owner] == nil { owners.add(owner) }
        waiting[owner, default: Queue()].add(work)
        count += 1
    }

    package mutating func next() -> (work: Work, owner: Int64)? {
        guard let owner = owners.next(), let work = waiting[owner]?.next() else { return nil }
        if waiting[owner]?.isEmpty ?? true { waiting[owner] = nil } else { owners.add(owner) }
        count -= 1
        return (work, owner)
    }

    fileprivate struct Queue {
        private var elements: [Work?] = []
        private var first = 0

        var isEmpty: Bool { first == elements.count }

        mutating func add(_ element: Work) { elements.append(element) }

        mutating func next() -> Work? {
            guard !isEmpty else { return nil }
            let element = elements[first].take()
            first += 1
            if isEmpty {
                elements.removeAll(keepingCapacity: true)
                first = 0
            } else if first > 1024 && first * 2 > elements.count {
                elements.removeFirst(first)
                first = 0
            }
            return element
        }
    }
}
