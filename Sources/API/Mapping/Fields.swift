import Core
import Launches
import Wire

extension HTTPFields {
    /// Header fields as an app gave them.
    init(_ map: StringMap) {
        self.init(map.map { HTTPField(name: $0.name, value: $0.value) })
    }
}

extension StringMap {
    /// Header fields as a JSON object.
    init(_ fields: HTTPFields) { self = EventContent.headers(fields) }

    /// A dictionary, in the order of its names' bytes.
    init(sorted dictionary: [String: String]) {
        self.init(
            dictionary.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map {
                (name: $0.key, value: $0.value)
            })
    }

    var dictionary: [String: String] { Dictionary(map { ($0.name, $0.value) }) { _, last in last } }
}

extension Wire.ContentDigest {
    init(_ digest: Core.ContentDigest) { self = EventContent.digest(digest) }
}

extension Core.ContentDigest {
    /// A digest that Wire has read, so that its value is lower-case hex already.
    init?(_ digest: Wire.ContentDigest) {
        guard let algorithm = DigestAlgorithm(rawValue: digest.algorithm.rawValue) else { return nil }
        self.init(algorithm: algorithm, value: digest.value.asciiLowercased)
    }
}
