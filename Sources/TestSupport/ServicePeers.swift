import Base
import Glibc

/// The shared parts of a service's nodes: their load balancer, and the bucket of their contents.
final class ServicePeers: Sendable {
    private struct State {
        /// The port of the first node, which tests kill, and which changes with each run.
        var firstPort: UInt16 = 0
        var others: [ServiceProcess] = []
        var turn = 0
    }

    private let state: Locked<State>
    private let balancer: CuttingProxy
    let bucket: BucketFolder

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
        // The balancer's threads also hold the nodes and may outlive the tests: their folders would stay.
        _ = state.withLock { $0.others.takeAll() }
    }

    /// The port of the balancer.
    var port: UInt16 { balancer.port }

    /// - Parameter hasContents: Whether each node gets its own argument for contents.
    func arguments(hasContents: Bool) -> [String] {
        ["--public-url", "http://127.0.0.1:\(port)"] + (hasContents ? [] : bucket.contents)
    }

    var environment: [String: String] { SeaweedFS.environment }

    /// The other nodes' output to standard error.
    var errors: String { others.map(\.errors).joined() }

    var others: [ServiceProcess] { state.withLock { $0.others } }

    func lead(to first: ServiceProcess) {
        let port = first.ownPort
        state.withLock { $0.firstPort = port }
    }

    func add(_ other: ServiceProcess) { state.withLock { $0.others.append(other) } }
}
