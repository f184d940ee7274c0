import Glibc
import TestSupport

/// A service on an island (`Tests/Egress/island.py`): a network of its own in which a connection to any address would
/// arrive, and is recorded.
final class Island: Sendable {
    /// One connection that arrived, forbidden or expected.
    struct Arrival: Hashable {
        let address: String
        let port: Int
        let bytes: Int
    }

    /// Ports of the trap, on every address.
    static let trapPorts = [8000, 80, 443]
    static let trapPort = 8000
    /// An address in a denied range that the operator allows: the redirector's.
    static let redirector = "203.0.113.200:8080"

    let service: ServiceProcess
    private let folder: TemporaryFolder

    /// Starts the service with the production policy. `places` are the redirector's targets, `names` the name server's
    /// answers: addresses, or `silent`. `options` are those of `resolv.conf`.
    init(places: [String], names: [String: JSON], options: String = "timeout:1 attempts:2") async throws {
        let folder = TemporaryFolder()
        let parts = Self.redirector.split(separator: ":").map(String.init)
        let plan: JSON = [
            "trapPorts": .array(Self.trapPorts.map { .integer($0) }),
            "redirector": ["address": .string(parts[0]), "port": .integer(Int(parts[1]) ?? 0)],
            "places": .array(places.map { .string($0) }), "names": .object(names),
            "resolverOptions": .string(options),
        ]
        folder.write(plan.bytes, to: "plan.json")
        self.folder = folder
        service = try await ServiceProcess(
            ["--listen", "127.0.0.1:8080", "--allow-egress", "\(parts[0])/32", "--allow-http-webhooks"], dev: false,
            wrapper: Self.command(plan: folder.file("plan.json"), report: folder.file("report")))
    }

    private static func command(plan: String, report: String) -> [String] {
        ["/usr/bin/python3", "\(repository)/Tests/Egress/island.py", plan, report]
    }

    /// Whether the machine permits a network of one's own.
    static func canBeHad() async -> Bool {
        let folder = TemporaryFolder()
        let plan: JSON = [
            "trapPorts": [], "redirector": ["address": "127.0.0.1", "port": 8080], "places": [], "names": [:],
        ]
        folder.write(plan.bytes, to: "plan.json")
        let command = command(plan: folder.file("plan.json"), report: folder.file("report"))
        return (try? await ChildProcess.run(command + ["/bin/true"])) != nil
    }

    /// The connections that have arrived.
    var arrivals: [Arrival] {
        let text = String(decoding: readFile(folder.file("report")) ?? [], as: UTF8.self)
        return text.split(separator: "\n").compactMap { line in
            guard let json = try? JSON(parsing: String(line)), let address = json["address"].string else { return nil }
            return Arrival(address: address, port: json["port"].int ?? 0, bytes: json["bytes"].int ?? 0)
        }
    }

    /// The number of queries for the IPv4 address of each silent name.
    var questions: [String: Int] {
        let text = String(decoding: readFile(folder.file("report")) ?? [], as: UTF8.self)
        let names = text.split(separator: "\n").compactMap { line -> String? in
            guard let json = try? JSON(parsing: String(line)), json["kind"].int == 1 else { return nil }
            return json["asked"].string
        }
        return Dictionary(names.map { ($0, 1) }, uniquingKeysWith: +)
    }

    /// A client with the operator's key.
    var admin: APIClient {
        let key = String(decoding: readFile(service.data.file("data/admin.key")) ?? [], as: UTF8.self)
        var client = service.api.with(key: String(key.prefix { $0 != "\n" }))
        client.observe = Contract.shared.check
        return client
    }
}

/// One row of `Tests/Egress/spellings.json`.
struct Spelling: Sendable {
    /// The expected result of a task.
    enum Verdict: Equatable {
        case egress
        /// Refused before a task is created.
        case unusable
        case error(Int)

        init?(_ text: String?) {
            switch text {
            case "egress": self = .egress
            case "422": self = .unusable
            case let text?:
                guard let code = Int(text) else { return nil }
                self = .error(code)
            case nil: return nil
            }
        }
    }

    let text: String
    let address: String
    let direct: Verdict
    let redirected: Verdict

    func url(_ scheme: String = "http") -> String { "\(scheme)://\(text):\(Island.trapPort)/" }

    /// Whether the text is a number or an IPv6 literal, not a name.
    var isLiteral: Bool { text.utf8.allSatisfy { "0123456789abcdefABCDEFxX.:[]".utf8.contains($0) } }

    static func all() throws -> [Spelling] {
        let rows = try JSON(parsing: readFile("\(repository)/Tests/Egress/spellings.json") ?? []).array ?? []
        return rows.compactMap { row in
            guard let text = row[0].string, let address = row[1].string, let direct = Verdict(row[2].string),
                let redirected = Verdict(row[3].string)
            else { return nil }
            return Spelling(text: text, address: address, direct: direct, redirected: redirected)
        }
    }
}
