extension TextRule {
    /// The name of a session or app: 1–128 of `A-Z a-z 0-9 . _ - ~ : @ +`, but not `.` or `..`, which clients remove
    /// from a URL (RFC 3986 section 5.2.4).
    public static let identifier = TextRule { text in
        let detail = "An identifier has 1 to 128 characters of A-Z a-z 0-9 . _ - ~ : @ +, and is neither . nor .."
        return [".", ".."].contains(text) ? detail : name(detail).fault(text)
    }

    /// The name of a root directory, or an identifier that the service created.
    public static let handle = name("This is not a name of the service.")

    private static func name(_ detail: String) -> TextRule {
        TextRule { text in
            (1...128).contains(text.utf8.count) && text.utf8.allSatisfy(Bytes.isIdentifier) ? nil : detail
        }
    }

    /// The app's description of a session or task.
    static let description = characters(atMost: 4096)

    /// A text of at most `limit` Unicode scalars, which JSON Schema's `maxLength` counts.
    static func characters(atMost limit: Int) -> TextRule {
        TextRule { text in
            text.unicodeScalars.count <= limit ? nil : "This must have at most \(limit) characters."
        }
    }

    /// `sha256/` and the SHA-256 of a public key in base64.
    public static let publicKeyPin = TextRule { text in
        let hash = text.hasPrefix("sha256/") ? Base64.decode(String(text.dropFirst(7))) : nil
        return hash?.count == 32 ? nil : "A pin is sha256/ and the base64 of the SHA-256 of a public key."
    }

    /// PEM text.
    public static let pem = TextRule { text in
        if let fault = length(1...65_536).fault(text) { return fault }
        return text.hasPrefix("-----BEGIN ") ? nil : "This must be PEM, beginning with -----BEGIN."
    }
}
