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
/// `create` is the app's own request with the draft's fields; a server that does not know them handles it as ever.
/// Each step is one exchange, so that no `ask` is under way during an `append`. After a crash the stored resource alone
/// leads to `ask`.
package struct ResumableUpload: Hashable, Sendable {
    /// `Upload-Draft-Interop-Version`.
    package enum Version: Int, Hashable, Sendable, CaseIterable {
        case eight = 8
        case six = 6
        /// Says `Upload-Incomplete` where the later ones say `Upload-Complete`.
        case three = 3
    }

    package enum Step: Hashable, Sendable {
        case create
        case ask
        case append(from: Int64)
        /// The task was cancelled: the server may forget its part.
        case abandon
    }

    /// What follows an answer.
    package enum Decision: Hashable, Sendable {
        /// An answer as any other: redirects, challenges and statuses mean what they always mean.
        case judge
        /// The target's answer, and so the task's response, whatever its status.
        case respond
        /// The next request at once, as ``step`` says.
        case proceed
        /// The upload resource moved: go on at this `Location`.
        case move(String)
        /// A failed attempt, by its status where it is one that may be tried again.
        case wait
        /// The server has lost its part: everything again, from the snapshot.
        case startAgain
        /// The server claims more bytes than there are.
        case fail
    }

    package let version: Version
    /// Bytes of the whole body.
    package let length: Int64
    package private(set) var step: Step
    /// The upload resource; nil until the server named one.
    package private(set) var resource: ParsedURL?
    /// Bytes that the server is known to have.
    package private(set) var offset: Int64 = 0
    /// 409s since bytes were last taken.
    private var mismatches = 0

    /// An upload that nothing has been sent of yet.
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
        step = .ask
    }

    /// Methods whose requests may be upgraded.
    package static func mayUpgrade(_ method: String) -> Bool { ["POST", "PUT", "PATCH"].contains(method) }

    /// Whether the app speaks the draft itself.
    package static func isSpoken(in fields: HTTPFields) -> Bool {
        [Name.complete, Name.incomplete, Name.offset, Name.version].contains { fields.contains($0) }
    }

    // MARK: Requests

    /// The method of the next request; nil for the app's own.
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

    /// Takes a 104 of this version.
    ///
    /// - Parameter resource: Where its `Location` leads, resolved; nil where it has none that may be used.
    /// - Returns: Whether the upload resource is another now, to be stored.
    package mutating func handle(informational head: ResponseHead, resource: ParsedURL?) -> Bool {
        guard head.status == 104, Self.version(of: head.fields) == version.rawValue, step != .ask else { return false }
        if let offset = Self.offset(in: head.fields), offset <= length { self.offset = max(self.offset, offset) }
        guard let resource, step == .create, resource != self.resource else { return false }
        self.resource = resource
        return true
    }

    /// Takes the final answer to the current step's request.
    ///
    /// - Parameter hasSentAll: Whether the whole body of the request was handed to the connection.
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

    /// The upload resource is found somewhere else.
    package mutating func move(to resource: ParsedURL) {
        self.resource = resource
        step = .ask
    }

    /// The server's part is of no use any more.
    package mutating func startAgain() {
        resource = nil
        offset = 0
        mismatches = 0
        step = .create
    }

    package mutating func abandon() { step = .abandon }

    private mutating func answered(_ head: ResponseHead, _ hasSentAll: Bool) -> Decision {
        switch (head.status, step) {
        case (200...299, _):
            // Before version 7 servers did not have to say that it is complete.
            guard isComplete(head) == false else { return .respond }
            step = .ask
            return .proceed
        case (401, _), (407, _): return .judge
        case (307, .append), (308, .append): return moved(head)
        case (409, .append):
            mismatches += 1
            step = .ask
            return mismatches > 1 ? .wait : .proceed
        case (404, .append), (410, .append):
            startAgain()
            return .startAgain
        case (408, _), (425, _), (429, _): return .wait
        case (500...599, _):
            // Where completeness need not be told, a status after the last byte is the target's word.
            if version != .eight, hasSentAll, isComplete(head) == nil { return .respond }
            return .wait
        default: return .respond
        }
    }

    /// The answer to `HEAD`.
    private mutating func told(_ head: ResponseHead) -> Decision {
        switch head.status {
        case 200...299:
            // All is there and processed; the target's own answer was lost on its way, and this one stands for it.
            if isComplete(head) == true { return .respond }
            guard let offset = Self.offset(in: head.fields) else {
                startAgain()
                return .startAgain
            }
            guard offset <= length else { return .fail }
            if offset > self.offset { mismatches = 0 }
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

    /// What an answer says of the upload: whether all of it was taken and processed, nil where it says nothing.
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

    /// The interop version that an answer speaks.
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

/// Which interop version each origin is spoken to.
///
/// A server must not answer a version that it does not know, so where no 104 came the next upload tries the next
/// version, until all have been tried. In memory only.
package struct UploadVersions: Sendable {
    private struct Entry {
        var version: ResumableUpload.Version
        var isKnown: Bool
    }

    /// Origins that are remembered.
    package static let capacity = 4096

    private var entries: [String: Entry] = [:]

    package init() {}

    package func version(for origin: String) -> ResumableUpload.Version { entries[origin]?.version ?? .eight }

    /// A 104 of this version came.
    package mutating func note(_ version: ResumableUpload.Version, of origin: String) {
        set(origin, Entry(version: version, isKnown: true))
    }

    /// An upload ended without a 104.
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
