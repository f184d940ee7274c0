/// One challenge of a `WWW-Authenticate` or `Proxy-Authenticate` field (RFC 9110 section 11.6.1).
package struct Challenge: Hashable, Sendable {
    /// Lower case.
    package var scheme: String
    package var realm: String?

    /// Apple's name for the scheme; `nil` for an unsupported one.
    package var method: ProtectionSpace.Method? {
        switch scheme {
        case "basic": .basic
        case "digest": .digest
        case "bearer": .bearer
        default: nil
        }
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
                if let realm = realm(in: parameter), !challenges.isEmpty {
                    challenges[challenges.count - 1].realm = realm
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

    private static func realm(in parameter: Substring) -> String? {
        let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard pair.count == 2 else { return nil }
        let name = pair[0].filter { $0 != " " && $0 != "\t" }
        guard String(name).equalsIgnoringASCIICase("realm") else { return nil }
        let text = String(pair[1])
        guard let open = text.firstIndex(of: "\""), let close = text.lastIndex(of: "\""), open < close else {
            return text.filter { $0 != " " && $0 != "\t" }
        }
        var realm = ""
        var isEscaped = false
        for character in text[text.index(after: open)..<close] {
            if character == "\\" && !isEscaped {
                isEscaped = true
            } else {
                realm.append(character)
                isEscaped = false
            }
        }
        return realm
    }
}
