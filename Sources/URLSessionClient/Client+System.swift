public import Wire

/// The service itself, and the operator's declarations.
extension Client {
    /// Whether the process responds.
    public func isAlive() async -> Bool { (try? await exchange("GET", ["healthz"])) != nil }

    /// Whether the service accepts work: its store is writable, its disk has room, and it is not shutting down.
    public func isReady() async -> Bool { (try? await exchange("GET", ["readyz"])) != nil }

    /// The operator's declaration of network, power, load and times. Requires the admin key.
    public func conditions() async throws -> Conditions { try await send("GET", ["v1", "system", "conditions"]) }

    /// Declares all conditions; an absent one gets its default. Requires the admin key.
    public func setConditions(_ conditions: Conditions) async throws -> Conditions {
        try await send("PUT", ["v1", "system", "conditions"], body: conditions.jsonBytes)
    }

    /// The nodes of the service. Requires the admin key.
    public func nodes(cursor: String? = nil, limit: Int = 100) async throws -> Page<Node> {
        try await page(["v1", "nodes"], cursor, limit)
    }

    /// Drains a node: it claims no more tasks and launches, and hands over its transfers, until it restarts. Requires
    /// the admin key.
    public func drainNode(_ id: String) async throws -> Node { try await send("POST", ["v1", "nodes", id, "drain"]) }

    /// The service's metrics in Prometheus' text format. Requires the admin key.
    public func metrics() async throws -> String {
        String(decoding: try await exchange("GET", ["metrics"]), as: UTF8.self)
    }

    /// The OpenAPI description of the API, as YAML or as JSON.
    public func apiDescription(asJSON isJSON: Bool = false) async throws -> String {
        String(decoding: try await exchange("GET", [isJSON ? "openapi.json" : "openapi.yaml"]), as: UTF8.self)
    }
}
