import TestSupport
import Testing

/// What operators watch the service with: alerts and a dashboard that name what `/metrics` has.
@Suite struct DeployTests {
    private let rules: String
    private let dashboard: String

    init() throws {
        func text(_ path: String) throws -> String {
            String(decoding: try #require(readFile("\(repository)/\(path)")), as: UTF8.self)
        }
        rules = try text("deploy/prometheus-rules.yml")
        dashboard = try text("deploy/grafana-dashboard.json")
    }

    /// The words of a text that are names of metrics.
    private func metrics(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init)
        return Set(words.filter { $0.hasPrefix("urlsessiond_") || $0.hasPrefix("process_") })
    }

    @Test func `Every metric of the alerts and the dashboard is there, and the dashboard shows all that there are`()
        async throws
    {
        // Some are there only where there is a bucket.
        let service = try await ServiceProcess(
            ["--bucket", "archive=s3://bucket/?endpoint=http://127.0.0.1:9"],
            environment: ["AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret"])
        let kinds = try await service.admin.get("/metrics").text.split(separator: "\n")
            .filter { $0.hasPrefix("# TYPE ") }.map { $0.split(separator: " ").map(String.init) }
        let families = Set(kinds.map { $0[2] })
        let parts = kinds.filter { $0[3] == "histogram" }.flatMap { kind in
            ["_bucket", "_sum", "_count"].map { kind[2] + $0 }
        }
        try #require(families.count > 25)
        for text in [rules, dashboard] {
            let strangers = metrics(in: text).subtracting(families).subtracting(parts)
            #expect(strangers.isEmpty, "\(strangers)")
        }
        let missing = families.filter { !dashboard.contains($0) }
        #expect(missing.isEmpty, "\(missing)")
    }

    @Test func `The dashboard is JSON whose panels ask for something`() throws {
        let panels = try #require(try JSON(parsing: dashboard)["panels"].array)
        #expect(panels.count > 20)
        for panel in panels where panel["type"] != "row" {
            let questions = (panel["targets"].array ?? []).compactMap { $0["expr"].string }
            #expect(!questions.isEmpty && panel["title"].string != nil, "\(panel)")
        }
    }

    @Test func `Every alert leads to what to do`() throws {
        let lines = rules.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }
        let alerts = lines.filter { $0.hasPrefix("- alert: ") }.map { String($0.dropFirst("- alert: ".count)) }
        let headings = String(decoding: readFile("\(repository)/docs/operating.md") ?? [], as: UTF8.self)
            .split(separator: "\n").filter { $0.hasPrefix("### ") }.map { $0.dropFirst(4) }
        #expect(alerts.count > 10)
        for alert in alerts {
            #expect(lines.contains { $0 == "runbook: docs/operating.md#\(alert.lowercased())" }, "\(alert)")
            #expect(headings.contains { $0 == alert }, "\(alert)")
        }
    }
}
