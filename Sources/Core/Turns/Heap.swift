/// A binary heap with the least element first.
package struct Heap<Element: Comparable> {
    private var elements: [Element] = []

    package init() {}

    package var isEmpty: Bool { elements.isEmpty }

    /// The least element, which is not removed.
    package var least: Element? { elements.first }

    package mutating func insert(_ element: Element) {
        elements.append(element)
        var child = elements.count - 1
        while child > 0, elements[child] < elements[(child - 1) / 2] {
            elements.swapAt(child, (child - 1) / 2)
            child = (child - 1) / 2
        }
    }

    package mutating func popLeast() -> Element? {
        guard let last = elements.popLast() else { return nil }
        guard let least = elements.first else { return last }
        elements[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < elements.count else { return least }
            if child + 1 < elements.count, elements[child + 1] < elements[child] { child += 1 }
            guard elements[child] < elements[parent] else { return least }
            elements.swapAt(parent, child)
            parent = child
        }
    }
}

extension Heap: Sendable where Element: Sendable {}
