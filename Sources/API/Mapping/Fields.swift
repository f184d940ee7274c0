import Core
import Wire

extension HTTPFields {
    /// Header fields as an app gave them.
    init(_ map: StringMap) {
        self.init(map.map { HTTPField(name: $0.name, value: $0.value) })
    }
}

extension StringMap {
    /// Header fields as a JSON object: lines of one name are joined, as RFC 9110 section 5.2 allows.
    init(_ fields: HTTPFields) {
        self.init()
        var names: [String: String] = [:]
        for field in fields.fields {
            let name = names[field.name.asciiLowercased] ?? field.name
            names[field.name.asciiLowercased] = name
            self[name] = self[name].map { "\($0), \(field.value)" } ?? field.value
        }
    }

    /// Header fields of an origin's answer. The cookies it sets are as good as credentials, and so are hidden.
    init(answer fields: HTTPFields) {
        self.init(
            HTTPFields(
                fields.fields.map { field in
                    let name = field.name.asciiLowercased
                    guard name == "set-cookie" || name == "set-cookie2" else { return field }
                    return HTTPField(name: field.name, value: Wire.SecretHeaders.placeholder)
                }))
    }

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
    init(_ digest: Core.ContentDigest) {
        self.init(algorithm: Algorithm(rawValue: digest.algorithm.rawValue), value: digest.value)
    }
}

extension Core.ContentDigest {
    /// A digest that Wire has read, so that its value is lower-case hex already.
    init?(_ digest: Wire.ContentDigest) {
        guard let algorithm = DigestAlgorithm(rawValue: digest.algorithm.rawValue) else { return nil }
        self.init(algorithm: algorithm, value: digest.value.asciiLowercased)
    }
}
