import Base
package import Core

/// A server of the IETF draft for resumable uploads on raw sockets, on a free port of 127.0.0.1.
///
/// Every path accepts uploads; upload resources are below `/uploads/`. The server can cut a request or its response at
/// any byte and send any 1xx. Requests with content take turns, in order; after the last turn all requests succeed.
package final class DraftServer: Sendable {
    /// The fault of one request with content.
    package struct Turn: Sendable {
        /// Ends the connection after so many bytes of the request's content, which count as received.
        package var cutBody: Int?
        /// Ends the connection after so many bytes of the response, 1xx responses included.
        package var cutAnswer: Int?
        package var ending = Misbehaviour.Ending.finish
        /// 1xx responses before the 104.
        package var informational: [(status: Int, fields: [(String, String)])] = []
        /// The version in the 104, if it differs from the request's.
        package var announcedVersion: String?
        package var withholds104 = false
        /// The `Location` of the 104, if it differs from the resource's path.
        package var location: String?
        /// Sends a 104 with `Upload-Offset` after every so many bytes.
        package var progressEvery: Int?
        /// A final response after so many bytes of the content, and the end of the connection.
        package var early: (after: Int, status: Int, fields: [(String, String)])?
        /// A final response instead of the right one, after the whole request; none of its bytes count as received.
        package var status: (Int, [(String, String)])?
        /// Stops reading after so many bytes of the content, until the gate opens.
        package var hold: (after: Int, gate: Gate)?
        /// The number of received bytes that are lost.
        package var forgets = 0

        package init(_ change: (inout Turn) -> Void = { _ in }) { change(&self) }
    }

    /// One request as it arrived.
    package struct Request: Sendable {
        package let method: String
        package let path: String
        package let fields: HTTPFields
        /// The number of received content bytes.
        package internal(set) var bodyLength = 0
    }

    /// One completed upload.
    package struct Finished: Sendable {
        package let path: String
        package let method: String
        package let length: Int
        /// The SHA-256 of all bytes, in lower-case hex.
        package let sha256: String
        /// The number of requests of the upload.
        package let requests: Int
    }

    package let port: UInt16
    /// The gate of responses to deletions. Open unless a test closes it.
    package let deletions: Gate
    private let server: SocketServer
    private let state: Locked<DraftState>

    /// - Parameter versions: The supported interop versions.
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

    /// Sets the faults of the next requests with content.
    package func take(_ turns: [Turn]) { state.withLock { $0.turns = turns[...] } }

    /// Sets statuses for the next queries of an offset, instead of the right response; 0 cuts the connection.
    package func answerOffsets(_ statuses: [(Int, [(String, String)])]) {
        state.withLock { $0.offsetAnswers = statuses[...] }
    }

    /// Sets the target's response to a completed upload.
    package func answer(_ status: Int, _ fields: [(String, String)] = [], body: String = "") {
        state.withLock { $0.answer = (status, fields, body) }
    }

    /// Redirects requests of a path, without reading their content.
    package func redirect(_ path: String, to location: String, status: Int = 307) {
        state.withLock { $0.redirects[path] = (status, location) }
    }

    /// Forgets all incomplete uploads.
    package func forgetUploads() { state.withLock { $0.uploads = [:] } }

    /// All requests so far, in the order of their heads.
    package var requests: [Request] { state.withLock { $0.requests } }

    package var methods: [String] { requests.map(\.method) }

    package var finished: [Finished] { state.withLock { $0.finished } }

    /// The content bytes of all requests together.
    package var bytesReceived: Int { requests.reduce(0) { $0 + $1.bodyLength } }

    /// How many connections are open.
    package var openConnections: Int { server.openConnections }

    /// Queries of an offset, or second appends, during an append of the same upload.
    package var intrusions: Int { state.withLock { $0.intrusions } }

    /// Upload resources that were deleted.
    package var deleted: [String] { state.withLock { $0.deleted } }
}

/// The shared state of a draft server's connections.
struct DraftState: Sendable {
    struct Upload: Sendable {
        var path: String
        var method: String
        var length: Int
        /// The received bytes, in pieces.
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

    /// Records that all bytes have arrived.
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
