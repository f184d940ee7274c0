/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 section 11.6.1).
package struct Challenge: Hashable, Sendable {
    /// Lower case.
    package var scheme: String
    package var realm: String?
    /// Parameters of a digest challenge, in lower case.
    private var algorithm: String?
    private var qop: String?

    package init(scheme: String, realm: String?) {
        self.scheme = scheme
        self.realm = realm
    }

    /// Apple's name for the scheme; `nil` for an unsupported one.
    package var method: ProtectionSpace.Method? {
        switch scheme {
        case "basic": .basic
        case "digest": .digest
        case "bearer": .bearer
        default: nil
        }
    }

    /// The challenges of all lines of the field that a credential could answer, in order.
    ///
    /// libcurl reads only the first digest challenge, knows neither SHA-512-256 nor a later algorithm, and digests an
    /// empty body for `auth-int` (RFC 7616 section 3.4.3).
    package static func answerable(_ values: [String], withBody hasBody: Bool) -> [Challenge] {
        let all = parse(values)
        let knowsDigest = all.first { $0.method == .digest }?.isComputable(withBody: hasBody) ?? false
        return all.filter { $0.method != nil && ($0.method != .digest || knowsDigest) }
    }

    private func isComputable(withBody hasBody: Bool) -> Bool {
        guard ["md5", "md5-sess", "sha-256", "sha-256-sess"].contains(algorithm ?? "md5") else { return false }
        guard let qop else { return true }
        let offered = qop.split { $0 == "," || $0 == " " || $0 == "\t" }
        return offered.contains("auth") || !hasBody && offered.contains("auth-int")
    }

    /// The challenges of all lines of the field, in order. Invalid parts are ignored.
    package static func parse(_ values: [String]) -> [Challenge] {
        var challenges: [Challenge] = []
        for value in values {
            for part in splitOutsideQuotes(value) {
                let text = part.drop { $0 == " " || $0 == "\t" }
                let first = text.prefix { $0 != " " && $0 != "\t" }
                let rest = text.dropFirst(first.count).drop { $0 == " " || $0 == "\t" }
                guard !first.isEmpty else { continue }
                // White space may precede the "=" of a parameter.
                let isParameter = first.contains("=") || rest.first == "="
                if !isParameter { challenges.append(Challenge(scheme: String(first).asciiLowercased, realm: nil)) }
                let parameter = isParameter ? text : rest
                if let (name, value) = pair(in: parameter), !challenges.isEmpty {
                    challenges[challenges.count - 1].set(name, value)
                }
            }
        }
        return challenges
    }

    /// Splits at commas outside quoted strings.
    private static func splitOutsideQuotes(_ value: String) -> [String] {
        var parts: [String] = []
        var current = ""
        var (isQuoted, isEscaped) = (false, false)
        for character in value.unicodeScalars {
            if isEscaped {
                isEscaped = false
            } else if isQuoted && character == "\\" {
                isEscaped = true
            } else if character == "\"" {
                isQuoted.toggle()
            } else if character == "," && !isQuoted {
                parts.append(current)
                current = ""
                continue
            }
            current.unicodeScalars.append(character)
        }
        return parts + [current]
    }

    private mutating func set(_ name: String, _ value: String) {
        switch name {
        case "realm": realm = value
        case "algorithm": algorithm = value.asciiLowercased
        case "qop": qop = value.asciiLowercased
        default: break
        }
    }

    /// The name of a parameter in lower case, and its value.
    private static func pair(in parameter: Substring) -> (name: String, value: String)? {
        let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard pair.count == 2 else { return nil }
        let name = String(pair[0].filter { $0 != " " && $0 != "\t" }).asciiLowercased
        let text = String(pair[1])
        guard let open = text.firstIndex(of: "\""), let close = text.lastIndex(of: "\""), open < close else {
            return (name, text.filter { $0 != " " && $0 != "\t" })
        }
        var value = ""
        var isEscaped = false
        for character in text[text.index(after: open)..<close] {
            if character == "\\" && !isEscaped {
                isEscaped = true
            } else {
                value.append(character)
                isEscaped = false
            }
        }
        return (name, value)
    }
}
