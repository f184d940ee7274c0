/// One upload that survives interruptions: the client's side of the IETF draft "Resumable Uploads for HTTP"
/// (draft-ietf-httpbis-resumable-upload).
///
///              ┌── broken, no 104 ──┐
///              ▼                    │                 ┌──── 409, part taken ────┐
///     ──▶ create ──── 104 with Location ──▶ broken ──▶ ask ── Upload-Offset ──▶ append ──▶ the target's answer
///              ▲                                       │ ▲                       │
///              └───────────────── 404, 410 ────────────┴─┼───────────────────────┤
///                                                        └──────── broken ───────┘
///
/// `create` is the app's own request with the draft's fields; a server that does not know them handles it as usual.
/// Each step is one exchange, so that no `ask` is in flight during an `append`. After a crash, only the stored upload
/// resource leads to `ask`.
package struct ResumableUpload: Hashable, Sendable {
    /// `Upload-Draft-Interop-Version`.
    package enum Version: Int, Hashable, Sendable, CaseIterable {
        case eight = 8
        case six = 6
        /// Uses `Upload-Incomplete` instead of `Upload-Complete`.
        case three = 3
    }

    package enum Step: Hashable, Sendable {
        case create
        case ask
        case append(from: Int64)
        /// The task was cancelled: the server may discard its part.
        case abandon
    }

    /// The consequence of a response.
    package enum Decision: Hashable, Sendable {
        /// A regular response: redirects, challenges and statuses have their usual meaning.
        case judge
        /// The target's response, which is the task's response, whatever its status.
        case respond
        /// Send the next request at once, according to ``step``.
        case proceed
        /// The upload resource moved: continue at this `Location`.
        case move(String)
        /// A failed attempt, retried if its status allows it.
        case wait
        /// The server has lost its part: restart from the stored body.
        case startAgain
        /// The server claims more bytes than the body has.
        case fail
    }

    package let version: Version
    /// The length of the whole body.
    package let length: Int64
    package private(set) var step: Step
    /// The upload resource; `nil` until the server named one.
    package private(set) var resource: ParsedURL?
    /// The number of bytes that the server is known to have.
    package private(set) var offset: Int64 = 0
    /// The number of responses that did not complete the upload since the server last reported more bytes.
    private var mismatches = 0
    /// The offset of the last response to `HEAD`, from which progress is measured: a 104 may claim more.
    private var toldOffset: Int64 = 0
    /// How often the upload resource has moved.
    package private(set) var moves = 0

    /// An upload of which nothing has been sent yet.
    package init(version: Version, length: Int64) {
        self.version = version
        self.length = length
        step = .create
    }

    /// An upload that was interrupted.
    package init(version: Version, length: Int64, resource: ParsedURL, offset: Int64) {
        self.init(version: version, length: length)
        self.resource = resource
        self.offset = offset
        toldOffset = offset
        step = .ask
    }

    /// Methods whose requests may be upgraded.
    package static func mayUpgrade(_ method: String) -> Bool { ["POST", "PUT", "PATCH"].contains(method) }

    /// Whether the app's own request uses the draft.
    package static func isSpoken(in fields: HTTPFields) -> Bool {
        [Name.complete, Name.incomplete, Name.offset, Name.version].contains { fields.contains($0) }
    }

    // MARK: Requests

    /// The method of the next request; `nil` for the app's own.
    package var method: String? {
        switch step {
        case .create: nil
        case .ask: "HEAD"
        case .append: "PATCH"
        case .abandon: "DELETE"
        }
    }

    /// The draft's fields of the next request.
    package var fields: HTTPFields {
        var fields = HTTPFields([HTTPField(name: Name.version, value: String(version.rawValue))])
        switch step {
        case .ask, .abandon: break
        case .create:
            fields.fields.append(completeness)
            fields.append(Name.length, String(length))
        case .append(let offset):
            fields.fields.append(completeness)
            fields.append(Name.offset, String(offset))
            if version != .three { fields.append("Content-Type", "application/partial-upload") }
        }
        return fields
    }

    private var completeness: HTTPField {
        version == .three
            ? HTTPField(name: Name.incomplete, value: "?0") : HTTPField(name: Name.complete, value: "?1")
    }

    // MARK: Answers

    /// Handles a 104 of this version.
    ///
    /// - Parameter resource: The resolved `Location`; `nil` if there is no usable one.
    /// - Returns: Whether the upload resource changed and must be stored.
    package mutating func handle(informational head: ResponseHead, resource: ParsedURL?) -> Bool {
        guard head.status == 104, Self.version(of: head.fields) == version.rawValue, step != .ask else { return false }
        if let offset = Self.offset(in: head.fields), offset <= length { self.offset = max(self.offset, offset) }
        guard let resource, step == .create, resource != self.resource else { return false }
        self.resource = resource
        return true
    }

    /// Handles the final response to the current step's request.
    ///
    /// - Parameter hasSentAll: Whether the whole body of the request was passed to the connection.
    package mutating func handle(answer head: ResponseHead, hasSentAll: Bool) -> Decision {
        switch step {
        case .create:
            if isComplete(head) == true { return .respond }
            guard resource != nil, head.status < 300 || head.status >= 400 else { return .judge }
            return answered(head, hasSentAll)
        case .append:
            if isComplete(head) == true { return .respond }
            return answered(head, hasSentAll)
        case .ask: return told(head)
        case .abandon: return .judge
        }
    }

    /// Sets the new location of the upload resource.
    package mutating func move(to resource: ParsedURL) {
        moves += 1
        self.resource = resource
        step = .ask
    }

    /// Discards the server's part.
    package mutating func startAgain() {
        resource = nil
        offset = 0
        toldOffset = 0
        mismatches = 0
        step = .create
    }

    package mutating func abandon() { step = .abandon }

    private mutating func answered(_ head: ResponseHead, _ hasSentAll: Bool) -> Decision {
        switch (head.status, step) {
        case (200...299, .create) where isComplete(head) == false:
            step = .ask
            return .proceed
        case (200...299, _):
            // Before version 7, servers did not have to declare completeness.
            guard isComplete(head) == false else { return .respond }
            return mismatched()
        case (401, _), (407, _): return .judge
        case (307, .append), (308, .append): return moved(head)
        case (409, .append): return mismatched()
        case (404, .append), (410, .append):
            startAgain()
            return .startAgain
        case (408, _), (425, _), (429, _): return .wait
        case (500...599, _):
            // In versions without a required declaration, a status after the last byte is the target's.
            if version != .eight, hasSentAll, isComplete(head) == nil { return .respond }
            return .wait
        default: return .respond
        }
    }

    /// Queries the offset: at once for the first time, and in another attempt while the server reports no progress.
    private mutating func mismatched() -> Decision {
        mismatches += 1
        step = .ask
        return mismatches > 1 ? .wait : .proceed
    }

    /// Handles the response to `HEAD`.
    private mutating func told(_ head: ResponseHead) -> Decision {
        switch head.status {
        case 200...299:
            // All bytes were processed. The target's own response was lost, and this one replaces it.
            if isComplete(head) == true { return .respond }
            guard let offset = Self.offset(in: head.fields) else {
                startAgain()
                return .startAgain
            }
            guard offset <= length else { return .fail }
            if offset > toldOffset { mismatches = 0 }
            toldOffset = offset
            self.offset = offset
            step = .append(from: offset)
            return .proceed
        case 307, 308: return moved(head)
        case 401, 407: return .judge
        case 408, 425, 429, 500...599: return .wait
        default:
            startAgain()
            return .startAgain
        }
    }

    private func moved(_ head: ResponseHead) -> Decision { head.fields["Location"].map(Decision.move) ?? .respond }

    /// Whether the server has received and processed the whole upload; `nil` if the response does not declare it.
    private func isComplete(_ head: ResponseHead) -> Bool? {
        if version == .three { return Self.boolean(head.fields[Name.incomplete]).map { !$0 } }
        return Self.boolean(head.fields[Name.complete])
    }

    // MARK: Fields

    private enum Name {
        static let version = "Upload-Draft-Interop-Version"
        static let complete = "Upload-Complete"
        static let incomplete = "Upload-Incomplete"
        static let offset = "Upload-Offset"
        static let length = "Upload-Length"
    }

    /// The interop version of a response.
    package static func version(of fields: HTTPFields) -> Int? { integer(fields[Name.version]).map { Int($0) } }

    private static func offset(in fields: HTTPFields) -> Int64? { integer(fields[Name.offset]) }

    /// A Structured Field integer without sign, at most 15 digits (RFC 9651 section 3.3.1); parameters are ignored.
    private static func integer(_ value: String?) -> Int64? {
        guard let value else { return nil }
        let bytes = ByteScanner(trimming: value).bytes.prefix { $0 != UInt8(ascii: ";") }
        guard (1...15).contains(bytes.count), bytes.allSatisfy(\.isDigit) else { return nil }
        return bytes.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    /// A Structured Field boolean (RFC 9651 section 3.3.6); parameters are ignored.
    private static func boolean(_ value: String?) -> Bool? {
        guard let value else { return nil }
        let bytes = ByteScanner(trimming: value).bytes.prefix { $0 != UInt8(ascii: ";") }
        if bytes.elementsEqual("?1".utf8) { return true }
        return bytes.elementsEqual("?0".utf8) ? false : nil
    }
}

/// The interop version used for each origin.
///
/// A server must not respond to a version that it does not know. Without a 104 the next upload therefore tries the next
/// version, until all have been tried. In memory only.
package struct UploadVersions: Sendable {
    private struct Entry {
        var version: ResumableUpload.Version
        var isKnown: Bool
    }

    /// The maximum number of origins.
    package static let capacity = 4096

    private var entries: [String: Entry] = [:]

    package init() {}

    package func version(for origin: String) -> ResumableUpload.Version { entries[origin]?.version ?? .eight }

    /// Records a 104 of this version.
    package mutating func note(_ version: ResumableUpload.Version, of origin: String) {
        set(origin, Entry(version: version, isKnown: true))
    }

    /// Records that an upload ended without a 104.
    package mutating func noteSilence(to version: ResumableUpload.Version, of origin: String) {
        guard entries[origin]?.isKnown != true, self.version(for: origin) == version else { return }
        switch version {
        case .eight: set(origin, Entry(version: .six, isKnown: false))
        case .six: set(origin, Entry(version: .three, isKnown: false))
        case .three: set(origin, Entry(version: .eight, isKnown: true))
        }
    }

    private mutating func set(_ origin: String, _ entry: Entry) {
        if entries.count >= Self.capacity, entries[origin] == nil { entries.removeAll() }
        entries[origin] = entry
    }
}
