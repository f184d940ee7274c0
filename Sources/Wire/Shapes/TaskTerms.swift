/// The terms that an app sets when it creates a task, and gets back with the task.
///
/// ``TaskCreation`` and ``SessionTask`` have these members among their own: `task.group` is `task.terms.group`.
public struct TaskTerms: Sendable, Hashable {
    /// The app's name of the task, unique in the session.
    public var clientTaskId: String?
    /// The group of the task, for session-wide calls.
    public var group: String?
    public var taskDescription: String?
    /// The app's metadata.
    public var metadata = StringMap()
    /// 0 to 1.
    public var priority = 0.5
    /// The earliest begin (RFC 3339).
    public var earliestBeginDate: String?
    /// Whether the app confirms the first attempt.
    public var confirmBeforeStart = false
    /// The app's estimate in bytes.
    public var countOfBytesClientExpectsToSend: Int64?
    /// The app's estimate in bytes.
    public var countOfBytesClientExpectsToReceive: Int64?
    /// The digest that the content must have.
    public var expectedDigest: ContentDigest?
    /// Content above this length fails the task.
    public var maximumContentLength: Int64?
    /// The app's validator: a 304 to it is `notModified`.
    public var ifNoneMatch: String?
    /// The codes and ranges of codes of the outcome `succeeded`.
    public var acceptableStatusCodes: [StatusCodes] = ["200-299"]
    /// Whether other codes fail the task.
    public var failOnHTTPError = false
    /// The destination of the content.
    public var destination: Destination?
    /// The number of concurrent connections of a download.
    public var segments = Segments.one
    /// Alternative URLs of the same bytes, in order of preference.
    public var mirrors: [String] = []
    /// Digests of consecutive pieces of the content.
    public var pieces: Pieces?

    private static let standard = TaskTerms()

    public init() {}

    /// - Parameter isShown: Whether all members are written. A creation leaves out those with default values.
    mutating func visit(_ members: inout some MemberVisitor, isShown: Bool) {
        let standard = Self.standard
        members.term("clientTaskId", &clientTaskId, isShown, .plain(1...256))
        members.term("group", &group, isShown, .plain(1...256))
        members.term("taskDescription", &taskDescription, isShown, .description)
        members.term("metadata", &metadata, isShown, unless: standard.metadata, .metadata)
        members.term("priority", &priority, isShown, unless: standard.priority, 0...1)
        members.term("earliestBeginDate", &earliestBeginDate, isShown, .timestamp)
        members.term("confirmBeforeStart", &confirmBeforeStart, isShown, unless: standard.confirmBeforeStart)
        members.term("countOfBytesClientExpectsToSend", &countOfBytesClientExpectsToSend, isShown, 0 ... .max)
        members.term("countOfBytesClientExpectsToReceive", &countOfBytesClientExpectsToReceive, isShown, 0 ... .max)
        members.term("expectedDigest", &expectedDigest, isShown)
        members.term("maximumContentLength", &maximumContentLength, isShown, 0 ... .max)
        members.term("ifNoneMatch", &ifNoneMatch, isShown, .entityTag)
        members.term(
            "acceptableStatusCodes", &acceptableStatusCodes, isShown, unless: standard.acceptableStatusCodes,
            .each(.statusRange, count: 1...100))
        members.term("failOnHTTPError", &failOnHTTPError, isShown, unless: standard.failOnHTTPError)
        members.term("destination", &destination, isShown)
        members.term("segments", &segments, isShown, unless: standard.segments)
        members.term(
            "mirrors", &mirrors, isShown, unless: standard.mirrors,
            .distinct(.url, count: 0...Self.mostMirrors, "A mirror occurs twice."))
        members.term("pieces", &pieces, isShown)
    }

    /// The maximum number of mirrors of one task.
    public static let mostMirrors = 16

    /// Checks that only downloads have segments and sources, and only downloads from a URL to a disk.
    ///
    /// - Parameter isObject: Whether the request is for an object.
    func check(as kind: TaskKind, isObject: Bool, _ reader: inout ObjectReader) {
        let given = [
            ("segments", segments != .one), ("mirrors", !mirrors.isEmpty), ("pieces", pieces != nil),
        ]
        for (name, isGiven) in given where isGiven {
            if kind == .upload {
                reader.report(name, "Only downloads have \(name).")
            } else if isObject || destination?.bucket != nil {
                reader.report(name, "Downloads from or into a bucket have no \(name).")
            }
        }
        if kind == .upload, destination?.bucket != nil {
            reader.report("destination", "bucket", detail: "Only downloads go into a bucket.")
        }
    }
}

extension MemberVisitor {
    fileprivate mutating func term<Value: MemberValue>(
        _ name: String, _ value: inout Value?, _ isShown: Bool, _ rule: @autoclosure () -> Value.Rule? = nil
    ) {
        if isShown { nullable(name, &value, rule()) } else { optional(name, &value, rule()) }
    }

    fileprivate mutating func term<Value: MemberValue & Equatable>(
        _ name: String, _ value: inout Value, _ isShown: Bool, unless standard: Value,
        _ rule: @autoclosure () -> Value.Rule? = nil
    ) {
        if isShown { defaulted(name, &value, rule()) } else { sparse(name, &value, unless: standard, rule()) }
    }
}

extension StringMap.Rule {
    static let metadata = Self(names: .plain(1...256), values: .characters(atMost: 4096), maximumCount: 64)
}
