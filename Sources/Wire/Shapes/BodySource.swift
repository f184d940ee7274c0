/// The source of the bytes that a task sends.
///
/// A client reads a form of a newer service as the ``json(_:)`` `null`.
public enum BodySource: Sendable, Hashable {
    /// A stored body, `body_…`.
    case id(String)
    /// Text, sent in UTF-8.
    case text(String)
    /// Bytes.
    case bytes([UInt8])
    /// A JSON value, sent as compact text.
    case json(JSON)
    /// A file below one of the operator's roots.
    case file(root: String, path: String)
    /// The content of a finished download of the same session.
    case task(Int64)
    /// An object in one of the operator's buckets, fetched before the first attempt.
    case object(bucket: String, key: String, versionId: String? = nil)

    /// The maximum number of bytes within a request: 64 KiB.
    public static let maximumInlineLength = 65_536

    /// The bytes, if they are part of the request.
    public var inlineBytes: [UInt8]? {
        switch self {
        case .text(let text): Array(text.utf8)
        case .bytes(let bytes): bytes
        case .json(let json): json.jsonBytes
        case .id, .file, .task, .object: nil
        }
    }
}

extension BodySource: JSONReadable, MemberValue {
    public init(reading reader: inout ObjectReader) {
        let forms = ["id", "text", "base64", "json", "root", "task", "bucket"].filter {
            reader.presence(of: $0) != .absent
        }
        guard forms.count == 1, let form = forms.first else {
            guard reader.mode == .strict else {
                self = .json(.null)
                return
            }
            reader.report("A body has exactly one of: id, text, base64, json, root and path, task, bucket and key.")
            reader.takeAll(["id", "text", "base64", "json", "root", "path", "task", "bucket", "key", "versionId"])
            self = .text("")
            return
        }
        switch form {
        case "id": self = .id(reader.required("id", "", .handle))
        case "text": self = .text(reader.required("text", ""))
        case "base64":
            let text = reader.required("base64", "")
            let bytes = Base64.decode(text)
            if bytes == nil { reader.report("base64", "This must be base64 with padding (RFC 4648 section 4).") }
            self = .bytes(bytes ?? [])
        case "json": self = .json(reader.required("json", .null))
        case "root":
            let root = reader.required("root", "", .handle)
            self = .file(root: root, path: reader.required("path", "", .relativePath))
        case "bucket":
            let bucket = reader.required("bucket", "", .handle)
            let key = reader.required("key", "", .objectKey)
            let hasVersion = reader.presence(of: "versionId") == .present
            let versionId = hasVersion ? reader.required("versionId", "", .plain(1...1024)) : nil
            self = .object(bucket: bucket, key: key, versionId: versionId)
        default: self = .task(reader.required("task", 1, 1 ... .max))
        }
        guard reader.mode == .strict, let length = inlineBytes?.count, length > Self.maximumInlineLength else { return }
        reader.report(form, "This is \(length) bytes; above \(Self.maximumInlineLength) use POST /v1/bodies.")
    }

    public func write(to writer: inout JSONWriter) {
        writer.object { writer in
            switch self {
            case .id(let id): writer.member("id", id)
            case .text(let text): writer.member("text", text)
            case .bytes(let bytes): writer.member("base64", Base64.encode(bytes))
            case .json(let json): writer.member("json", json)
            case .file(let root, let path):
                writer.member("root", root)
                writer.member("path", path)
            case .task(let number): writer.member("task", number)
            case .object(let bucket, let key, let versionId):
                writer.member("bucket", bucket)
                writer.member("key", key)
                if let versionId { writer.member("versionId", versionId) }
            }
        }
    }
}
