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
            route("GET", "/v1/nodes", .operator) { .json(Page(items: try await $0.nodes(), nextCursor: nil)) },
            route("POST", "/v1/nodes/{id}/drain", .operator, body: .empty) { try await $0.drainNode() },
        ]
    }
}

extension Call {
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
