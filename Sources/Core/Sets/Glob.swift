/// A pattern of Python's `fnmatch`, as huggingface_hub applies it to paths: `*` also matches slashes, and a pattern that
/// ends in a slash matches all below the folder. Scalars are compared, never their canonical equivalents.
package struct Glob: Sendable {
    private enum Element {
        case star
        case any
        case scalar(Unicode.Scalar)
        case set([ClosedRange<Unicode.Scalar>], isNegated: Bool)

        var isStar: Bool { if case .star = self { true } else { false } }

        /// Whether the scalar alone matches.
        func matches(_ scalar: Unicode.Scalar) -> Bool {
            switch self {
            case .star: false
            case .any: true
            case .scalar(let own): own == scalar
            case .set(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
            }
        }
    }

    private let elements: [Element]
    /// The greatest number of comparisons for each scalar of a path.
    let cost: Int

    package init(_ pattern: String) {
        var rest = Array((pattern.utf8.last == UInt8(ascii: "/") ? pattern + "*" : pattern).unicodeScalars)[...]
        var elements: [Element] = []
        // Without an end for one set there is none for a later one: without this, brackets take quadratic time.
        var setsEnd = true
        cost = rest.count
        while let scalar = rest.popFirst() {
            switch scalar {
            case "*": if elements.last?.isStar != true { elements.append(.star) }
            case "?": elements.append(.any)
            case "[":
                let set = setsEnd ? Self.set(&rest) : nil
                setsEnd = set != nil
                elements.append(set ?? .scalar("["))
            default: elements.append(.scalar(scalar))
            }
        }
        self.elements = elements
    }

    /// The set after a `[`; `nil` if it has no end, and the bracket means itself.
    private static func set(_ rest: inout ArraySlice<Unicode.Scalar>) -> Element? {
        let isNegated = rest.first == "!"
        var inner = isNegated ? rest.dropFirst() : rest
        // A bracket that comes first belongs to the set.
        guard let end = inner.dropFirst().firstIndex(of: "]") else { return nil }
        rest = rest[(end + 1)...]
        inner = inner[..<end]
        var ranges: [ClosedRange<Unicode.Scalar>] = []
        while let first = inner.popFirst() {
            let isRange = inner.count > 1 && inner.first == "-"
            let last = isRange ? inner[inner.startIndex + 1] : first
            if isRange { inner = inner.dropFirst(2) }
            if first <= last { ranges.append(first...last) }
        }
        return .set(ranges, isNegated: isNegated)
    }

    package func matches(_ path: String) -> Bool { matches(Array(path.unicodeScalars)) }

    /// The time is at most ``cost`` for each scalar.
    func matches(_ path: [Unicode.Scalar]) -> Bool {
        var (element, position) = (0, 0)
        // After a difference only the last star matches more: it can skip all that an earlier star could skip.
        var star: (element: Int, position: Int)?
        while position < path.count {
            if element < elements.count, elements[element].isStar {
                star = (element, position)
                element += 1
            } else if element < elements.count, elements[element].matches(path[position]) {
                element += 1
                position += 1
            } else if let last = star {
                star = (last.element, last.position + 1)
                (element, position) = (last.element + 1, last.position + 1)
            } else {
                return false
            }
        }
        return elements[element...].allSatisfy(\.isStar)
    }
}

/// The choice of a source's files by its globs.
struct GlobFilter {
    /// The maximum number of comparisons: a second or two. A longer computation would hold back other apps.
    static let mostComparisons = 1_000_000_000

    private let allow: [Glob]
    private let ignore: [Glob]
    private let cost: Int
    private var comparisons = 0

    init(_ source: SetSource) {
        allow = source.allow.map(Glob.init)
        ignore = source.ignore.map(Glob.init)
        cost = (allow + ignore).reduce(0) { $0 + $1.cost }
    }

    /// - Parameter path: A path without a violation, and so of a limited length.
    mutating func admits(_ path: String) throws(SetExpansionError) -> Bool {
        let path = Array(path.unicodeScalars)
        comparisons += path.count * cost
        guard comparisons <= Self.mostComparisons else {
            throw SetExpansionError("The globs are too long for a list of this length.")
        }
        let isAllowed = allow.isEmpty || allow.contains { $0.matches(path) }
        return isAllowed && !ignore.contains { $0.matches(path) }
    }
}
