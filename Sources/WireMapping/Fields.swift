package import Core
import Formats
package import Wire

extension HTTPFields {
    /// Header fields in the app's form.
    package init(_ map: StringMap) {
        self.init(map.map { HTTPField(name: $0.name, value: $0.value) })
    }
}

extension StringMap {
    /// Header fields as a JSON object: several lines of one name are joined with commas (RFC 9110 section 5.3).
    package init(_ fields: HTTPFields) {
        self.init()
        for field in fields.fields {
            if let line = first(where: { $0.name.equalsIgnoringASCIICase(field.name) }) {
                self[line.name] = line.value + ", " + field.value
            } else {
                append(field.name, field.value)
            }
        }
    }

    /// A dictionary, in the order of its names' bytes.
    package init(sorted dictionary: [String: String]) {
        self.init(
            dictionary.sorted { $0.key.utf8.lexicographicallyPrecedes($1.key.utf8) }.map {
                (name: $0.key, value: $0.value)
            })
    }

    var dictionary: [String: String] { Dictionary(map { ($0.name, $0.value) }) { _, last in last } }
}

extension String {
    /// A host as the URL parser writes it: a name in lower case, an address in the form of RFC 5952.
    package var canonicalHost: String { IPAddress(self)?.description ?? asciiLowercased }
}

extension Wire.ContentDigest {
    package init(_ digest: Core.ContentDigest) {
        self.init(algorithm: Algorithm(digest.algorithm), value: digest.value)
    }
}

extension Core.ContentDigest {
    /// A digest that Wire has parsed, so that its value is valid hex.
    package init?(_ digest: Wire.ContentDigest) {
        guard let algorithm = DigestAlgorithm(digest.algorithm) else { return nil }
        self.init(algorithm: algorithm, value: digest.value.asciiLowercased)
    }
}
