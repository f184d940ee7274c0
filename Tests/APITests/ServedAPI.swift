import Base
import Core
import HTTPServer
import Launches
import Service
import Store
import TestSupport
import Transfers

@testable import API

/// The whole API on a socket, over a service of its own, while a test runs.
struct ServedAPI: Sendable {
    let server: APIServer
    let http: HTTPServer
    /// The key of app `dev`.
    let dev: APIClient
    /// The operator's key.
    let admin: APIClient

    var service: Service { server.service }

    /// Runs `body` against a running API.
    static func run(
        loops: Bool = false, configured configure: (inout APISettings) -> Void = { _ in },
        _ body: @escaping @Sendable (ServedAPI) async throws -> Void
    ) async throws {
        let folder = TemporaryFolder()
        let egress = EgressPolicy(allowed: [CIDR(.v4(0x7F00_0000), 8), CIDR(.v6(1), 128)])
        var settings = ServiceSettings(dataFolder: folder.path, version: "1", egress: egress)
        settings.freeDiskFloor = 0
        let metrics = Metrics()
        let service = try Service(
            settings: settings, store: try await TestStore.location(in: folder),
            sealer: Sealer(masterKey: RandomBytes.make(32)),
            transferThreads: 1, clock: .system, log: .none, metrics: metrics,
            onFatalError: { preconditionFailure("\($0)") })
        try await service.prepare()
        let launches = try Launches(
            store: service.store,
            settings: LaunchSettings(
                publicURL: "http://service.test", version: "1", egress: egress, allowsHTTP: false),
            bell: service.outlet.launches, clock: .system, log: .none, metrics: metrics,
            carryOut: { service.outlet.handle($0) })
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: "first", hash: Digest.of(Array("dev".utf8)), scopes: Scope.allCases,
            createdAt: service.clock.now, expiresAt: nil)
        _ = try await service.createApp(
            identifier: "dev", webhook: WebhookSettings(), backgroundRefreshStatus: .available, limits: AppLimits(),
            key: key, webhookSecret: RandomBytes.make(32), recording: nil)
        var api = APISettings(
            adminKeyHash: Digest.of(Array("admin".utf8)),
            cursorKey: RandomBytes.make(32))
        api.literalKeys = [.init(hash: key.hash, keyIdentifier: key.keyIdentifier)]
        configure(&api)
        let server = APIServer(settings: api, service: service, launches: launches, metrics: metrics, log: .none)
        let http = try HTTPServer.start(
            on: Listener(address: "127.0.0.1", port: 0), router: server.router, refusal: server.refuse,
            adorn: server.adorn,
            log: .none, observe: { server.observe($0) })
        let client = APIClient(port: http.port)
        let served = ServedAPI(server: server, http: http, dev: client, admin: client.with(key: "admin"))
        let result = await withTaskGroup(of: Void.self) { group in
            if loops {
                group.addTask { try? await service.run() }
                group.addTask { await server.run() }
            }
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(served))
            } catch {
                result = .failure(error)
            }
            await http.stop(within: .seconds(5))
            await service.drain(within: .milliseconds(loops ? 2000 : 1))
            group.cancelAll()
            return result
        }
        service.close()
        _ = folder
        try result.get()
    }

    /// Creates session `s` of app `dev`.
    @discardableResult
    func session(_ identifier: String = "s") async throws -> APIClient.Answer {
        try await dev.put("/v1/sessions/\(identifier)", [:])
    }

    /// A client with the key in a response.
    func client(_ created: APIClient.Answer) throws -> APIClient {
        guard let key = created.json["apiKey"].string else { throw DeadlineExceeded("a key in the answer") }
        return dev.with(key: key)
    }

    /// The creation of a task, suspended by default.
    func task(_ url: String = "https://example.com/a", state: String = "suspended", client: String? = nil) -> JSON {
        var task: JSON = ["kind": "download", "request": ["url": .string(url)], "state": .string(state)]
        if let client { task["clientTaskId"] = .string(client) }
        return task
    }
}

/// Text as bytes.
func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
