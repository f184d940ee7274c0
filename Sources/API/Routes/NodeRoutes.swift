import Core
import HTTPServer
import Service
import Transfers
import Wire
import WireMapping

extension APIServer {
    /// The processes that make up the service, for the operator.
    var nodeRoutes: [Route] {
        [
            route("GET", "/v1/nodes", .operator, query: ["limit", "cursor"]) { try await $0.listNodes() },
            route("POST", "/v1/nodes/{id}/drain", .operator, body: .empty) { try await $0.drainNode() },
        ]
    }
}

extension Call {
    /// A cursor counts nodes: few come and go between two pages.
    fileprivate func listNodes() async throws -> HTTPResponse {
        let nodes = Array(zip(1..., try await nodes()))
        return try await page(
            fetch: { Array(nodes.dropFirst(Int($0)).prefix($1)) }, position: { Int64($0.0) }, write: { $0.1 })
    }

    fileprivate func nodes() async throws -> [Wire.Node] {
        try await service.nodeRecords().map { Wire.Node($0, at: service.clock.now) }
    }

    fileprivate func drainNode() async throws -> HTTPResponse {
        let id = parameter("id")
        try await service.drain(node: id)
        guard let node = try await nodes().first(where: { $0.id.utf8.elementsEqual(id.utf8) }) else {
            throw DomainError.notFound
        }
        return .json(node, status: 202)
    }
}
