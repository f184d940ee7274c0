/// The paths of a version's files.
package enum SetPath {
    /// The indices of two paths that collide: the second is the same as the first, or lies below it. `nil` if none do.
    package static func collision(in paths: [String]) -> (Int, Int)? {
        let order = paths.indices.sorted { one, other in
            let (one, other) = ((paths[one].utf8, one), (paths[other].utf8, other))
            return one.0.lexicographicallyPrecedes(other.0) || one.1 < other.1 && one.0.elementsEqual(other.0)
        }
        var sorted = SortedSetPaths()
        for index in order {
            guard let earlier = sorted.add(paths[index]) else { continue }
            return paths.firstIndex { $0.utf8.elementsEqual(earlier.utf8) }.map { ($0, index) }
        }
        return nil
    }
}

/// The search for collisions among paths that arrive in the order of their bytes. Its time is linear in their lengths.
package struct SortedSetPaths {
    private var last: [UInt8] = []
    /// The lengths of the paths with which ``last`` begins, in ascending order. The last one is that of ``last``.
    private var lengths: [Int] = []

    package init() {}

    /// Adds a path and returns the earlier one that is the same or a folder of it, if any.
    package mutating func add(_ path: String) -> String? {
        let bytes = Array(path.utf8)
        let common = zip(last, bytes).prefix { $0 == $1 }.count
        while let length = lengths.last, length > common { lengths.removeLast() }
        let earlier = lengths.first { $0 == bytes.count || bytes[$0] == UInt8(ascii: "/") }
        lengths.append(bytes.count)
        last = bytes
        return earlier.map { String(decoding: bytes[..<$0], as: UTF8.self) }
    }
}
