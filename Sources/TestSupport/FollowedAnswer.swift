import Base
package import Core

/// A response that is read as it arrives, on its own thread.
package final class FollowedAnswer: Sendable {
    package struct State: Sendable {
        package var status: Int?
        package var fields = HTTPFields()
        package var body: [UInt8] = []
        /// The fields behind a chunked body.
        package var trailers = HTTPFields()
        /// Whether the body has its length, or its last chunk.
        package var isWhole = false
        /// Whether the response has ended.
        package var isOver = false
    }

    private let state = Locked(State())

    init(_ read: @escaping @Sendable (_ note: ((inout State) -> Void) -> Void) throws -> Void) {
        let state = state
        try? SystemThread.start("followed") {
            try? read { change in state.withLock { change(&$0) } }
            state.withLock { $0.isOver = true }
        }
    }

    /// The received bytes.
    package var now: State { state.withLock { $0 } }

    /// Waits for a number of bytes of the body, and returns the received bytes.
    @discardableResult
    package func bytes(_ count: Int) async throws -> State {
        try await eventually("\(count) bytes of the answer") { now.body.count >= count ? now : nil }
    }

    /// Waits for the end of the response.
    package func end() async throws -> State {
        try await eventually("the end of the answer") { now.isOver ? now : nil }
    }
}
