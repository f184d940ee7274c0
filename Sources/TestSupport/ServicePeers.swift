import Base
import Glibc

/// What the nodes of one service share: the way to them, and the bucket where their contents are.
final class ServicePeers: Sendable {
    private struct State {
        /// The first, which tests kill, and whose port changes with each run.
        var firstPort: UInt16 = 0
        var others: [ServiceProcess] = []
        var turn = 0
    }

    private let state: Locked<State>
    private let balancer: CuttingProxy
    private let bucket: BucketFolder

    init() async throws {
        let state = Locked(State())
        self.state = state
        bucket = try await SharedSeaweedFS.folder()
        balancer = try CuttingProxy {
            state.withLock { state in
                state.turn += 1
                let ports = [state.firstPort] + state.others.map(\.ownPort)
                return ports.indices.map { ports[($0 + state.turn) % ports.count] }
            }
        }
    }

    deinit {
        // Threads of the balancer hold them as well, and may last longer than the tests: their folders would stay behind.
        _ = state.withLock { $0.others.takeAll() }
    }

    /// Where requests are taken.
    var port: UInt16 { balancer.port }

    /// - Parameter hasContents: Whether each is told by itself where contents are.
    func arguments(hasContents: Bool) -> [String] {
        ["--public-url", "http://127.0.0.1:\(port)"] + (hasContents ? [] : bucket.contents)
    }

    var environment: [String: String] { SeaweedFS.environment }

    /// What the others wrote to standard error.
    var errors: String { others.map(\.errors).joined() }

    var others: [ServiceProcess] { state.withLock { $0.others } }

    func lead(to first: ServiceProcess) {
        let port = first.ownPort
        state.withLock { $0.firstPort = port }
    }

    func add(_ other: ServiceProcess) { state.withLock { $0.others.append(other) } }
}
