import Glibc
import URLSessionClient
import Wire

enum SystemCommands {
    // MARK: Conditions

    static func conditions(_ call: Invocation) async throws { try show(try await call.client.conditions(), call) }

    static func setConditions(_ call: Invocation) async throws {
        let path = call.words.text("FILE") ?? "-"
        try show(try await call.client.setConditions(LocalFiles.json(path)), call)
    }

    private static func show(_ conditions: Conditions, _ call: Invocation) throws {
        try call.output.show(conditions, lines)
    }

    static func lines(_ conditions: Conditions) -> [String] {
        let (network, power) = (conditions.network, conditions.power)
        var words = [network.reachable ? "reachable" : "not reachable"]
        if network.cellular { words.append("cellular") }
        if network.expensive { words.append("expensive") }
        if network.constrained { words.append("constrained") }
        let load = conditions.maximumLoad.map { "at most \($0)" } ?? "any"
        var lines = [
            "Network: \(words.joined(separator: ", "))",
            "Power: \(power.external ? "external" : "battery")\(power.lowPowerMode ? ", low power mode" : "")",
            "Load for discretionary tasks: \(load)",
            "Background refresh: \(conditions.backgroundRefreshStatus)",
        ]
        if conditions.windows.isEmpty { lines.append("Discretionary tasks run: always") }
        lines += conditions.windows.map { window in
            let isDaily = window.days.count == Conditions.Weekday.known.count
            let days = isDaily ? "every day" : window.days.map(\.rawValue).joined(separator: ", ")
            let rate = window.bandwidthLimit.map { ", \(Words.bytes($0))/s" } ?? ""
            return "Discretionary tasks run: \(days) from \(window.from) to \(window.to) UTC\(rate)"
        }
        return lines
    }

    // MARK: Nodes

    static func nodes(_ call: Invocation) async throws {
        try await call.output.list(
            ["node", "state", "roles", "transfers", "version", "URL"], { try await call.client.nodes(cursor: $0) }, row)
    }

    static func drain(_ call: Invocation) async throws {
        try call.output.row(try await call.client.drainNode(call.words.text("ID") ?? ""), row)
    }

    private static func row(_ node: Node) -> [String] {
        [
            node.id, node.state.rawValue, node.roles.map(\.rawValue).joined(separator: ","),
            "\(node.transfersRunning) of \(node.maximumTransfers)", node.version, node.url,
        ]
    }
}
