import Base
import Core
import Glibc
import TestSupport
import Testing

/// The common parts of tests with three nodes: one PostgreSQL server and one bucket, behind a load balancer.
enum Cluster {
    static let configuration: JSON = ["retryPolicy": ["initialDelay": 0.1, "maximumDelay": 0.2]]

    static func scene(_ arguments: [String] = [], configuration: JSON? = configuration) async throws -> Scene {
        try await Scene(arguments, configuration: configuration, nodes: 3)
    }

    /// The number of a node's transfers, from its metrics.
    static func transfers(of node: ServiceProcess) async throws -> Int {
        let text = try await APIClient(port: node.ownPort, key: "dev-admin").get("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("urlsessiond_transfers_running ") }
        return Int(line?.split(separator: " ").last ?? "") ?? 0
    }

    static func nodes(_ scene: Scene) async throws -> [JSON] {
        try await scene.service.admin.get("/v1/nodes").json["items"].array ?? []
    }

    /// A client of one node, with the key of the app `dev`.
    static func api(_ node: ServiceProcess) -> APIClient { APIClient(port: node.ownPort) }

    /// Creates slow downloads: of a small content, and of a large one.
    static func orderSlow(_ count: Int, _ scene: Scene) async throws {
        for (path, length) in [("/small", 20_000), ("/large", 400_000)] {
            scene.origin.serve(
                path, .generated(seed: 1, length: length),
                always: [.trickle(size: length / 40, pause: .milliseconds(100))])
        }
        let tasks = (0..<count).map { scene.downloadOf($0 % 2 == 0 ? "/small" : "/large") }
        expect(try await scene.api.post("/v1/sessions/s/tasks/batch", ["tasks": .array(tasks)]), 201)
    }

    static func expectEachOnce(_ count: Int, _ scene: Scene) async throws {
        let session = try await scene.settled()
        #expect(session["taskCounts"]["succeeded"].int == count, "\(session["taskCounts"])")
        let events = try await scene.events()
        expectSound(events)
        #expect(completions(events).count == count)
        for number in 1...min(count, 8) {
            let (seed, length) = (UInt64(1), number % 2 == 1 ? 20_000 : 400_000)
            let content = try await scene.content(number)
            #expect(Content.sha256(of: content.body) == Content.sha256(seed: seed, length: length), "\(number)")
        }
    }
}

extension String {
    var trimmingNewline: String { String(prefix { $0 != "\n" }) }
}

extension [ServiceProcess] {
    func mapAsync<T>(_ body: (ServiceProcess) async throws -> T) async rethrows -> [T] {
        var all: [T] = []
        for node in self { all.append(try await body(node)) }
        return all
    }
}
