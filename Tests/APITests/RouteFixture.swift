import Base
import Core
import Glibc
import Launches
import Service
import Store
import TestSupport
import Testing
import Transfers
import Wire

@testable import API
@testable import HTTPServer

/// TestSupport has its own type, for tests that do not import Wire.
typealias WireJSON = Wire.JSON

/// A response with its body read.
struct Answered: Sendable {
    let status: Int
    let headers: RequestHeaders
    let bytes: [UInt8]

    var json: WireJSON {
        get throws { try WireJSON.parse(bytes) }
    }

    func read<Value: JSONReadable>(_ type: Value.Type = Value.self) throws -> Value {
        try Value(parsing: bytes, .tolerant)
    }

    var problem: ProblemCode? { try? read(Problem.self).code }
}

/// The API over a service of its own, without a socket, and an origin.
final class RouteFixture: Sendable {
    let server: APIServer
    let service: Service
    let app: AppID
    let folder: TemporaryFolder
    let origin: OriginServer

    private init(_ server: APIServer, _ app: AppID, _ folder: TemporaryFolder, _ origin: OriginServer) {
        self.server = server
        service = server.service
        self.app = app
        self.folder = folder
        self.origin = origin
    }

    /// Runs `body` while the service runs.
    static func run(_ body: @escaping @Sendable (RouteFixture) async throws -> Void) async throws {
        let folder = TemporaryFolder()
        let loopback = EgressPolicy(allowed: [CIDR(.v4(0x7F00_0000), 8), CIDR(.v6(1), 128)])
        var settings = ServiceSettings(dataFolder: folder.path, version: "1", egress: loopback)
        settings.freeDiskFloor = 0
        let service = try Service(
            settings: settings, store: try await TestStore.location(in: folder),
            sealer: Sealer(masterKey: RandomBytes.make(32)),
            transferThreads: 1, clock: .system, log: .none, metrics: Metrics(),
            onFatalError: { preconditionFailure("\($0)") })
        try await service.prepare()
        let key = KeyRecord(
            app: AppID(0), keyIdentifier: "first", hash: Digest.of(Array("dev".utf8)), scopes: Core.Scope.allCases,
            createdAt: service.clock.now, expiresAt: nil)
        let app = try await service.createApp(
            identifier: "dev", webhook: WebhookSettings(), backgroundRefreshStatus: .available,
            limits: Core.AppLimits(),
            key: key, webhookSecret: RandomBytes.make(32), recording: nil)
        var api = APISettings(
            adminKeyHash: Digest.of(Array("admin".utf8)),
            cursorKey: RandomBytes.make(32))
        api.literalKeys = [.init(hash: key.hash, keyIdentifier: key.keyIdentifier)]
        let launches = try Launches(
            store: service.store,
            settings: LaunchSettings(
                publicURL: "http://service.test", version: "1", egress: loopback, allowsHTTP: true),
            bell: service.outlet.launches, clock: .system, log: .none, metrics: Metrics(),
            carryOut: { service.outlet.handle($0) })
        let server = APIServer(
            settings: api, service: service, launches: launches, metrics: Metrics(), log: .none)
        let fixture = RouteFixture(server, app.id, folder, try OriginServer())
        let result = await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await service.run() }
            group.addTask { try? await launches.run() }
            let result: Result<Void, any Error>
            do {
                result = .success(try await body(fixture))
            } catch {
                result = .failure(error)
            }
            await service.drain(within: .seconds(2))
            group.cancelAll()
            return result
        }
        service.close()
        try result.get()
    }

    /// Sends a request with its whole body.
    func call(
        _ method: String, _ target: String, key: String? = "dev", headers: [(String, String)] = [],
        body: [UInt8]? = nil
    ) async throws -> Answered {
        try await begin(method, target, key: key, headers: headers, body: body).value
    }

    /// Starts a request where the server would: it is queued when this function returns.
    ///
    /// - Parameters:
    ///   - executor: The executor that runs it instead.
    ///   - end: Called on the same executor after the response.
    func begin(
        _ method: String, _ target: String, key: String? = "dev", headers: [(String, String)] = [],
        body: [UInt8]? = nil, on executor: (any TaskExecutor)? = nil, then end: @escaping @Sendable () -> Void = {}
    ) throws -> Task<Answered, any Error> {
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let segments = parts[0].split(separator: "/").map(String.init)
        let query = (parts.count > 1 ? parts[1].split(separator: "&") : []).map { pair in
            let sides = pair.split(separator: "=", maxSplits: 1).map(String.init)
            return (name: sides[0], value: sides.count > 1 ? sides[1] : "")
        }
        let (route, parameters) = try #require(find(method, segments), "\(method) \(target)")
        var fields = headers.map { (name: $0.0, value: $0.1) }
        if let key { fields.append(("Authorization", "Bearer \(key)")) }
        var request = HTTPRequest(
            method: method, rawTarget: target, segments: segments, query: query, headers: RequestHeaders(fields),
            parameters: parameters, requestID: "request", framing: .none, clientGone: ClientGone())
        if let body {
            request.framing = .length(UInt64(body.count))
            request.body = route.body == .stream ? .stream(RequestStream(body)) : .bytes(body)
        }
        return Task(executorPreference: executor ?? route.executor?(request)) { [request] in
            let response = await route.handler(request)
            end()
            return Answered(
                status: response.status, headers: RequestHeaders(response.headers.map { (name: $0.0, value: $0.1) }),
                bytes: Self.bytes(response.body))
        }
    }

    /// Sends a request with a JSON body.
    func call(_ method: String, _ target: String, key: String = "dev", json: WireJSON) async throws -> Answered {
        try await call(
            method, target, key: key, headers: [("Content-Type", "application/json")], body: json.jsonBytes)
    }

    private func find(_ method: String, _ segments: [String]) -> (Route, [String: String])? {
        guard case .route(let route, let parameters) = server.router.match(method: method, segments: segments) else {
            return nil
        }
        return (route, parameters)
    }

    private static func bytes(_ body: HTTPResponseBody) -> [UInt8] {
        switch body {
        case .none, .stream, .sized: return []
        case .bytes(let bytes): return bytes
        case .file(let descriptor, let offset, let length):
            defer { close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: Int(length))
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeMutableBytes {
                    pread(descriptor, $0.baseAddress! + done, $0.count - done, off_t(offset) + off_t(done))
                }
                guard count > 0 else { return Array(bytes[..<done]) }
                done += count
            }
            return bytes
        }
    }

    /// A session with one completed download.
    func download(_ resource: Resource, kind: Core.TaskKind = .download) async throws -> TaskRecord {
        origin.serve("/file", resource)
        let session = try await service.openSession(
            "s", app: app, configuration: nil, description: nil, onlyCreates: false, recording: nil
        ).session
        let request = Core.TransferRequest(url: origin.url("/file"), method: "GET")
        let order = TaskOrder(
            specification: TaskSpecification(kind: .download, request: request), isSuspended: false)
        let created = try await service.createTasks([order], in: session, recording: nil)
        let number = try #require(created.first).task.number
        return try await eventually("the end of the download") {
            let task = try await self.service.task(number, in: session.id)
            return task.state == .completed ? task : nil
        }
    }
}
