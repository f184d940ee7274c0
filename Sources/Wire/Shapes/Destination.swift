/// The destination of a download: a path below one of the operator's roots, or an object in one of the operator's
/// buckets, which is written during the download.
public struct Destination: Shape {
    /// The operator's name of a root.
    public var root: String?
    /// The path relative to the root, with `/` between its parts.
    public var path: String?
    /// The operator's name of a bucket.
    public var bucket: String?
    /// The key of the object, after the operator's prefix.
    public var key: String?
    /// Whether an existing file or object is replaced.
    public var replace = false
    /// The storage class of the object, in the store's words.
    public var storageClass: String?
    /// Metadata of the object.
    public var metadata = StringMap()

    public init() {}

    public init(root: String, path: String, replace: Bool = false) {
        self.root = root
        self.path = path
        self.replace = replace
    }

    public init(
        bucket: String, key: String, replace: Bool = false, storageClass: String? = nil, metadata: StringMap = [:]
    ) {
        self.bucket = bucket
        self.key = key
        self.replace = replace
        self.storageClass = storageClass
        self.metadata = metadata
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.given("root", &root, .handle)
        members.given("path", &path, .relativePath)
        members.given("bucket", &bucket, .handle)
        members.given("key", &key, .objectKey)
        members.defaulted("replace", &replace)
        members.given("storageClass", &storageClass, .storageClass)
        members.sparse("metadata", &metadata, unless: StringMap(), .objectMetadata)
    }

    public func check(_ reader: inout ObjectReader) {
        reader.checkDestination("key", others: ["storageClass", "metadata"])
    }
}

extension ObjectReader {
    /// Checks that a destination has a root and a path, or a bucket and the member `key`.
    ///
    /// - Parameter others: Further members of a destination in a bucket.
    mutating func checkDestination(_ key: String, others: [String] = []) {
        func has(_ name: String) -> Bool { presence(of: name) == .present }
        let isObject = (["bucket", key] + others).contains(where: has)
        guard isObject != ["root", "path"].contains(where: has) else {
            return report("A destination is a root and a path, or a bucket and a \(key).")
        }
        for name in isObject ? ["bucket", key] : ["root", "path"] where !has(name) {
            report(name, "This member is missing; it must be a string.")
        }
    }
}

extension TextRule {
    /// The key of an object: 1–1024 bytes without control characters. Proxies and some stores would resolve `.` and
    /// `..` to other keys.
    public static let objectKey = TextRule { text in
        guard (1...1024).contains(text.utf8.count) else { return "A key has 1 to 1024 bytes." }
        guard text.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return "A key has no control characters." }
        let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.contains { $0.isDots } ? "A key has no . and no .. between its slashes." : nil
    }

    static let storageClass = TextRule { text in
        let isName = (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(Bytes.isToken)
        return isName ? nil : "A storage class is a word of the store, such as STANDARD_IA."
    }
}

extension StringMap.Rule {
    /// Values of `x-amz-meta-…` fields. S3 limits them to 2 KiB in total.
    static let objectMetadata = Self(
        names: TextRule { text in
            guard (1...128).contains(text.utf8.count), text.utf8.allSatisfy(Bytes.isToken) else {
                return "A name has 1 to 128 characters of a header field's name."
            }
            return text.lowercased() == "urlsessiond" ? "This name is reserved." : nil
        },
        values: TextRule { text in
            guard text.utf8.count <= 1024, text.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else {
                return "A value has at most 1024 characters of ASCII."
            }
            return text.utf8.first == 0x20 || text.utf8.last == 0x20 ? "A value has no space at its ends." : nil
        }, maximumCount: 16)
}
