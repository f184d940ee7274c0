import Base
package import Core

/// A server of the IETF draft for resumable uploads on raw sockets, on a free port of 127.0.0.1.
///
/// Every path takes uploads; upload resources lie below `/uploads/`. It can cut a request or its answer at any byte and
/// send any 1xx. Requests with content take turns, in order; after the last turn all goes well.
package final class DraftServer: Sendable {
    /// What goes wrong with one request that has content.
    package struct Turn: Sendable {
        /// Ends the connection after so many bytes of the request's content. What came counts as received.
        package var cutBody: Int?
        /// Ends the connection after so many bytes of all that would be sent, 1xx answers included.
        package var cutAnswer: Int?
        package var ending = Misbehaviour.Ending.finish
        /// 1xx answers before the 104.
        package var informational: [(status: Int, fields: [(String, String)])] = []
        /// The version that the 104 says, where it is not the request's.
        package var announcedVersion: String?
        package var withholds104 = false
        /// The `Location` of the 104, where it is not the resource's path.
        package var location: String?
        /// Sends a 104 with `Upload-Offset` whenever so many bytes more have come.
        package var progressEvery: Int?
        /// A final answer after so many bytes of the content, and the end of the connection.
        package var early: (after: Int, status: Int, fields: [(String, String)])?
        /// A final answer in place of the right one, once all has been read; nothing of it counts as received.
        package var status: (Int, [(String, String)])?
        /// Reads no more once so many bytes of the content came, until the gate opens.
        package var hold: (after: Int, gate: Gate)?
        /// Bytes that are lost after they came.
        package var forgets = 0

        package init(_ change: (inout Turn) -> Void = { _ in }) { change(&self) }
    }

    /// One request as it arrived.
    package struct Request: Sendable {
        package let method: String
        package let path: String
        package let fields: HTTPFields
        /// Bytes of content that came.
        package internal(set) var bodyLength = 0
    }

    /// One upload that is whole.
    package struct Finished: Sendable {
        package let path: String
        package let method: String
        package let length: Int
        /// Of all bytes, in lower-case hex.
        package let sha256: String
        /// How many requests brought it.
        package let requests: Int
    }

    package let port: UInt16
    /// What holds back the answers to deletions. Open unless a test closes it.
    package let deletions: Gate
    private let server: SocketServer
    private let state: Locked<DraftState>

    /// - Parameter versions: The interop versions it speaks.
    package init(versions: Set<Int> = [8, 6, 3]) throws {
        let (state, deletions) = (Locked(DraftState(versions: versions)), Gate())
        deletions.open()
        self.state = state
        self.deletions = deletions
        server = try SocketServer(port: 0) { DraftConnection($0, state, deletions).serve() }
        port = server.port
    }

    deinit { server.stop() }

    package func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

    /// Sets what goes wrong with the next requests that have content.
    package func take(_ turns: [Turn]) { state.withLock { $0.turns = turns[...] } }

    /// Sets statuses for the next requests for an offset, in place of the right answer; 0 cuts the connection.
    package func answerOffsets(_ statuses: [(Int, [(String, String)])]) {
        state.withLock { $0.offsetAnswers = statuses[...] }
    }

    /// Sets what the target answers when an upload is whole.
    package func answer(_ status: Int, _ fields: [(String, String)] = [], body: String = "") {
        state.withLock { $0.answer = (status, fields, body) }
    }

    /// Answers requests of a path with a redirect, without reading their content.
    package func redirect(_ path: String, to location: String, status: Int = 307) {
        state.withLock { $0.redirects[path] = (status, location) }
    }

    /// Forgets all uploads that are not whole.
    package func forgetUploads() { state.withLock { $0.uploads = [:] } }

    /// All requests so far, in the order of their heads.
    package var requests: [Request] { state.withLock { $0.requests } }

    package var methods: [String] { requests.map(\.method) }

    package var finished: [Finished] { state.withLock { $0.finished } }

    /// Bytes of content that came in all requests together.
    package var bytesReceived: Int { requests.reduce(0) { $0 + $1.bodyLength } }

    /// How many connections are open.
    package var openConnections: Int { server.openConnections }

    /// Requests for an offset, or second appends, while an append of the same upload was under way.
    package var intrusions: Int { state.withLock { $0.intrusions } }

    /// Upload resources that were deleted.
    package var deleted: [String] { state.withLock { $0.deleted } }
}

/// What the connections of a draft server share.
struct DraftState: Sendable {
    struct Upload: Sendable {
        var path: String
        var method: String
        var length: Int
        /// Bytes as they came, piece by piece.
        var pieces: [[UInt8]] = []
        var received = 0
        var requests = 1
        var isBusy = false
        var isWhole = false
    }

    let versions: Set<Int>
    var turns: ArraySlice<DraftServer.Turn> = []
    var offsetAnswers: ArraySlice<(Int, [(String, String)])> = []
    var answer: (status: Int, fields: [(String, String)], body: String) = (201, [], "taken")
    var redirects: [String: (Int, String)] = [:]
    var uploads: [String: Upload] = [:]
    var requests: [DraftServer.Request] = []
    var finished: [DraftServer.Finished] = []
    var intrusions = 0
    var deleted: [String] = []
    var lastUpload = 0

    init(versions: Set<Int>) { self.versions = versions }

    mutating func begin(_ upload: Upload) -> String {
        lastUpload += 1
        let resource = "/uploads/\(lastUpload)"
        uploads[resource] = upload
        return resource
    }

    mutating func append(_ piece: [UInt8], to resource: String) {
        uploads[resource]?.pieces.append(piece)
        uploads[resource]?.received += piece.count
    }

    mutating func forget(_ count: Int, of resource: String) {
        guard count > 0, var upload = uploads[resource] else { return }
        let kept = max(0, upload.received - count)
        upload.pieces = [Array(upload.pieces.joined().prefix(kept))]
        upload.received = kept
        uploads[resource] = upload
    }

    /// Notes that all bytes are there.
    mutating func complete(_ resource: String) {
        guard let upload = uploads[resource] else { return }
        uploads[resource]?.isWhole = true
        let digest = Digest()
        for piece in upload.pieces { digest.update(piece) }
        finished.append(
            DraftServer.Finished(
                path: upload.path, method: upload.method, length: upload.received,
                sha256: Content.hex(digest.finish()), requests: upload.requests))
    }
}
