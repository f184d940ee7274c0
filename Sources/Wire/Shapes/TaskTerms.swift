/// What an app may say about a task when it creates it, and is told again with the task.
///
/// ``TaskCreation`` and ``SessionTask`` have these members among their own: `task.group` is `task.terms.group`.
public struct TaskTerms: Sendable, Hashable {
    /// The app's name for it, unique in the session.
    public var clientTaskId: String?
    /// What it belongs to, for session-wide calls.
    public var group: String?
    public var taskDescription: String?
    /// The app's own names and texts.
    public var metadata = StringMap()
    /// 0 to 1.
    public var priority = 0.5
    /// Not before this time (RFC 3339).
    public var earliestBeginDate: String?
    /// Whether the app is asked once before the first attempt.
    public var confirmBeforeStart = false
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToSend: Int64?
    /// The app's guess in bytes.
    public var countOfBytesClientExpectsToReceive: Int64?
    /// What the content must have.
    public var expectedDigest: ContentDigest?
    /// Content above this length fails the task.
    public var maximumContentLength: Int64?
    /// The app's validator: a 304 to it is `notModified`.
    public var ifNoneMatch: String?
    /// Codes and ranges of codes that are `succeeded`.
    public var acceptableStatusCodes: [StatusCodes] = ["200-299"]
    /// Whether other codes fail the task.
    public var failOnHTTPError = false
    /// Where the content is moved.
    public var destination: Destination?
    /// Over how many connections at a time a download comes.
    public var segments = Segments.one
    /// More URLs of the same bytes, in order of preference.
    public var mirrors: [String] = []
    /// Digests of consecutive pieces of the content.
    public var pieces: Pieces?

    private static let standard = TaskTerms()

    public init() {}

    /// - Parameter isShown: A task is shown with all of them; a creation leaves out what it does not need to say.
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

    /// Mirrors of one task.
    public static let mostMirrors = 16

    /// Only what is downloaded has parts and sources, and only what comes by URL to a disk.
    ///
    /// - Parameter isObject: Whether the request asks for an object.
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
    static let metadata = Self(names: .plain(1...256), values: .length(0...4096), maximumCount: 64)
}
