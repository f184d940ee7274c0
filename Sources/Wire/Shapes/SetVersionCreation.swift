/// The body of `POST /v1/sets/{name}/versions`.
@dynamicMemberLookup
public struct SetVersionCreation: Shape {
    /// The maximum number of files of one JSON body.
    public static let mostFiles = 10_000
    /// The maximum number of files sent as lines.
    public static let mostLines = 100_000

    /// The members beside the files.
    public var head = SetVersionHead()
    /// The files, or a source that the service expands into files.
    public var files: [SetVersionFile]?
    public var source: SetSource?

    public init() {}

    public init(session: String, files: [SetVersionFile]) {
        head.session = session
        self.files = files
    }

    public init(session: String, source: SetSource) {
        head.session = session
        self.source = source
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        head.visit(&members)
        members.given("files", &files, .count(1...Self.mostFiles))
        members.given("source", &source)
    }

    public subscript<Value>(dynamicMember member: WritableKeyPath<SetVersionHead, Value>) -> Value {
        get { head[keyPath: member] }
        set { head[keyPath: member] = newValue }
    }

    public func check(_ reader: inout ObjectReader) {
        switch (reader.presence(of: "files"), reader.presence(of: "source")) {
        case (.absent, .absent): reader.report("A version has files or a source.")
        case (.absent, _), (_, .absent): break
        default: reader.report("source", "A version has files or a source, not both.")
        }
    }
}

/// The first line of a version that is sent as lines; each following line is a ``SetVersionFile``.
public struct SetVersionHead: Shape {
    /// The name of the version; `nil` for the commit of a Hugging Face source, else for the `versionId`.
    public var version: String?
    /// The session whose tasks fetch the files.
    public var session = ""
    /// The app's metadata.
    public var metadata = StringMap()

    public init() {}

    public init(session: String, version: String? = nil) { (self.session, self.version) = (session, version) }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.optional("version", &version, .versionName)
        members.member("session", &session, .identifier)
        members.sparse("metadata", &metadata, unless: StringMap(), .metadata)
    }
}

/// A file of a new version.
public struct SetVersionFile: Shape {
    /// The path within the version, with `/` between its parts.
    public var path = ""
    /// A request by GET.
    public var request = TransferRequest()
    /// The digest that the file must have.
    public var expectedDigest: ContentDigest?
    /// The length that the file must have, in bytes.
    public var length: Int64?

    public init() {}

    public init(_ path: String, _ request: TransferRequest, _ expectedDigest: ContentDigest? = nil) {
        (self.path, self.request, self.expectedDigest) = (path, request, expectedDigest)
    }

    public mutating func visit(_ members: inout some MemberVisitor) {
        members.member("path", &path, .setPath)
        members.member("request", &request)
        members.optional("expectedDigest", &expectedDigest)
        members.optional("length", &length, 0 ... .max)
    }

    public func check(_ reader: inout ObjectReader) {
        request.check(as: .download, at: "request", &reader)
        if let method = request.method, method != "GET" {
            reader.report("request", "method", detail: "The files of a set are fetched with GET.")
        }
        if request.body != nil { reader.report("request", "body", detail: "The files of a set are fetched with GET.") }
    }
}
