public import Wire

/// The service itself, and what its operator declares.
extension Client {
    /// Whether the process answers.
    public func isAlive() async -> Bool { (try? await exchange("GET", ["healthz"])) != nil }

    /// Whether the service takes work: its store is writable, its disk has room, and it is not shutting down.
    public func isReady() async -> Bool { (try? await exchange("GET", ["readyz"])) != nil }

    /// What the operator declares about network, power, load and times. Takes the admin key.
    public func conditions() async throws -> Conditions { try await send("GET", ["v1", "system", "conditions"]) }

    /// Declares all conditions; what is not said has its default. Takes the admin key.
    public func setConditions(_ conditions: Conditions) async throws -> Conditions {
        try await send("PUT", ["v1", "system", "conditions"], body: conditions.jsonBytes)
    }

    /// The processes that make up the service. Takes the admin key.
    public func nodes() async throws -> Page<Node> { try await send("GET", ["v1", "nodes"]) }

    /// Has a node take no more tasks and launches, and hand over what it has, until it is started again. Takes the admin
    /// key.
    public func drainNode(_ id: String) async throws -> Node { try await send("POST", ["v1", "nodes", id, "drain"]) }

    /// The service's metrics, as Prometheus reads them. Takes the admin key.
    public func metrics() async throws -> String {
        String(decoding: try await exchange("GET", ["metrics"]), as: UTF8.self)
    }

    /// The description of the API in OpenAPI's form: as YAML, or as JSON.
    public func apiDescription(asJSON isJSON: Bool = false) async throws -> String {
        String(decoding: try await exchange("GET", [isJSON ? "openapi.json" : "openapi.yaml"]), as: UTF8.self)
    }
}
