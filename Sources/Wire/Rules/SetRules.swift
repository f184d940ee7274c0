extension TextRule {
    /// The name of a version: an identifier that is a folder's name and no `versionId`.
    static let versionName = TextRule { text in
        if let fault = identifier.fault(text) { return fault }
        if text.hasPrefix(".") { return "The name of a version does not begin with a dot." }
        return text.hasPrefix("sver_") ? "Names that begin with sver_ are those of the service." : nil
    }

    /// A name of a version, or a `versionId`.
    static let version = TextRule { text in
        identifier.fault(text) == nil ? nil : "This is neither the name of a version nor a versionId."
    }

    /// The beginning of the keys of a set's objects, without the slash after it.
    static let keyPrefix = TextRule { text in
        guard (1...512).contains(text.utf8.count) else { return "A prefix has 1 to 512 bytes." }
        return relativePath.fault(text).map { _ in
            "A prefix does not begin or end with a slash, and has no control characters, no empty parts, no . and no .."
        }
    }

    /// `ORG/NAME` or `NAME` of Hugging Face, as huggingface_hub's `validate_repo_id` accepts them.
    static let repository = TextRule { text in
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        let isValid =
            (1...96).contains(text.utf8.count) && parts.count <= 2
            && parts.allSatisfy { part in
                !part.isEmpty && part.utf8.allSatisfy(Bytes.isRepository)
                    && !["-", "."].contains { part.hasPrefix($0) || part.hasSuffix($0) }
            }
            && !text.contains("--") && !text.contains("..") && !text.hasSuffix(".git")
        return isValid ? nil : "A repository is ORG/NAME or NAME, in letters, digits and - _ ."
    }

    /// A branch, tag or commit. The layout `hf-cache` has a file of this name.
    static let revision = TextRule { text in
        let isValid = text.utf8.count <= 255 && relativePath.fault(text) == nil
        return isValid ? nil : "A revision is a branch, a tag or a commit of at most 255 bytes."
    }

    /// A glob of Python's `fnmatch`: `*`, `?`, `[abc]`, `[!abc]`.
    static let glob = TextRule { text in
        if let fault = plain(1...1024).fault(text) { return fault }
        var rest = Array(text.utf8)[...]
        while let start = rest.firstIndex(of: UInt8(ascii: "[")) {
            rest = rest[(start + 1)...]
            if rest.first == UInt8(ascii: "!") { rest = rest.dropFirst() }
            // A bracket that is the first character of a set belongs to the set.
            guard let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "]")) else {
                return "A [ needs a ] after the characters of its set."
            }
            rest = rest[(end + 1)...]
        }
        return nil
    }
}

extension Bytes {
    fileprivate static func isRepository(_ byte: UInt8) -> Bool {
        isDigit(byte) || isLetter(byte) || "-_.".utf8.contains(byte)
    }
}
