import Base
import Core
import Files
import Glibc
import TestSupport
import TransferEngine

/// An engine, an origin and a folder for one test, and the engine's reports.
final class EngineHarness: Sendable {
    let engine: TransferEngine
    let origin: OriginServer
    let folder = TemporaryFolder()
    private let reports: Locked<[ExchangeReport]>
    private let nextID = Locked<UInt64>(0)

    /// Loopback is allowed for the origin.
    static let loopback = EgressPolicy(allowed: [CIDR(.v4(0x7F00_0000), 8)])

    init(
        threads: Int = 1, lookUps: LookUpLimits = LookUpLimits(total: 2), buffers: Int = 64,
        room: DiskRoom = DiskRoom(floor: 0),
        resolve: @escaping @Sendable (String) -> Resolution = Resolution.ofSystem
    ) throws {
        let reports = Locked<[ExchangeReport]>([])
        self.reports = reports
        origin = try OriginServer()
        engine = try TransferEngine(
            threads: threads, diskThreads: 2, lookUps: lookUps, buffers: buffers, log: .none, room: room,
            resolve: resolve,
            report: { report in reports.withLock { $0.append(report) } })
    }

    var partial: String { folder.file("partial") }

    /// A request that keeps its content, with changed members.
    ///
    /// - Parameter place: A path of the origin, or a URL.
    func request(_ place: String, _ change: (inout ExchangeRequest) -> Void = { _ in }) -> ExchangeRequest {
        guard let url = try? ParsedURL(place.hasPrefix("/") ? origin.url(place) : place) else {
            preconditionFailure("\(place) is no URL")
        }
        let id = nextID.withLock { id in
            id += 1
            return id
        }
        var request = ExchangeRequest(
            id: ExchangeID(rawValue: id), pool: 1, url: url, sink: .content(path: "\(partial)-\(id)"),
            egress: Self.loopback
        ) { [200, 201, 206].contains($0.status) ? .keep(at: 0) : .discard(limit: 4096) }
        request.idleTimeout = .seconds(20)
        change(&request)
        return request
    }

    /// Runs a request to its end.
    @discardableResult
    func run(_ request: ExchangeRequest) async throws -> ExchangeResult {
        engine.start(request)
        return try await result(of: request)
    }

    func result(of request: ExchangeRequest) async throws -> ExchangeResult {
        try await eventually("the end of \(request.url.text)") {
            for case .ended(request.id, let result) in reports(of: request) { return result }
            return nil
        }
    }

    func reports(of request: ExchangeRequest) -> [ExchangeReport] {
        reports.withLock { reports in
            reports.filter { report in
                switch report {
                case .head(request.id, _, _), .informational(request.id, _), .durable(request.id, _, _),
                    .part(request.id, _), .ended(request.id, _):
                    true
                default: false
                }
            }
        }
    }
}

extension HeadJudgement {
    static var stop: HeadJudgement { HeadJudgement(.stop) }
    static func keep(at offset: Int64) -> HeadJudgement { HeadJudgement(.keep(at: offset)) }
    static func discard(limit: Int) -> HeadJudgement { HeadJudgement(.discard(limit: limit)) }
}

extension ExchangeResult {
    var bytes: [UInt8]? {
        switch received {
        case .none: nil
        case .memory(let bytes): bytes
        case .file(let path, _): readFile(path)
        case .parts: lastPart?.bytes
        }
    }
}
