import Foundation
import TestSupport
import Testing

/// The operators' alerts and dashboard use the names in `/metrics`.
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

    /// The names of metrics in a text.
    private func metrics(in text: String) -> Set<String> {
        let words = text.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_")) }.map(String.init)
        return Set(words.filter { $0.hasPrefix("urlsessiond_") || $0.hasPrefix("process_") })
    }

    @Test func `Every metric of the alerts and the dashboard exists, and the dashboard shows all metrics`()
        async throws
    {
        // Some metrics exist only with a bucket.
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

    @Test func `The dashboard is JSON, and each of its panels has a query`() throws {
        let panels = try #require(try JSON(parsing: dashboard)["panels"].array)
        #expect(panels.count > 20)
        for panel in panels where panel["type"] != "row" {
            let questions = (panel["targets"].array ?? []).compactMap { $0["expr"].string }
            #expect(!questions.isEmpty && panel["title"].string != nil, "\(panel)")
        }
    }

    @Test(
        .enabled(if: getuid() == 0 && access("/usr/bin/setpriv", X_OK) == 0, "another user needs root and setpriv"),
        .enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not installed"))
    func `The setup of compose waits until it can store the app's keys, and the receiver gets them`()
        async throws
    {
        let compose = String(decoding: readFile("\(repository)/compose.yaml") ?? [], as: UTF8.self)
        let opening = "chmod 777 /app && exec python3 /examples/receiver.py"
        #expect(compose.contains("\"\(opening)\"") && compose.contains("user: \"10001\""))
        let scene = try await Scene(configuration: nil)
        for path in ["/receiver.py", "/"] { scene.origin.serve(path, .text("content of \(path)")) }
        // Another user needs access, which not every temporary folder permits.
        let folder = TemporaryFolder(in: "/tmp")
        for place in ["app", "inbox"] {
            try FileManager.default.createDirectory(atPath: folder.file(place), withIntermediateDirectories: true)
        }
        folder.write(Array((scene.service.admin.key ?? "").utf8), to: "admin.key")
        for place in [folder.path, folder.file("app")] { chmod(place, 0o755) }
        chown(folder.file("admin.key"), 10001, 10001)
        let port = try ExampleTests.freePort()
        let keys = folder.file("app/app.json")
        let setup = try await ChildProcess(
            [
                "/usr/bin/setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", "/bin/sh",
                "\(repository)/examples/compose/setup",
            ],
            environment: [
                "URLSESSIOND=http://127.0.0.1:\(scene.service.port)", "ORIGIN=\(scene.origin.url(""))",
                "RECEIVER=http://127.0.0.1:\(port)/", "ADMIN_KEY_FILE=\(folder.file("admin.key"))", "APP_FILE=\(keys)",
            ])
        try await stays("it waits for the folder", for: .seconds(1)) {
            !setup.hasEnded && !FileManager.default.fileExists(atPath: keys)
        }
        let receiver = try await ExampleTests.start(
            [
                "/bin/sh", "-c",
                opening.replacing("/app", with: folder.file("app")).replacing("/examples", with: ExampleTests.examples),
            ],
            ["LISTEN": "127.0.0.1:\(port)", "INBOX": folder.file("inbox"), "APP_FILE": keys], port: port,
            service: scene.service.port, log: folder.file("log"))
        try await eventually("it has handed over two downloads") { setup.hasEnded }
        #expect(FileManager.default.fileExists(atPath: keys))
        // The second one has no name but its host's.
        try await eventually("both are saved", within: .seconds(60)) {
            Set(filesBelow(folder.file("inbox"))) == ["receiver.py", "127.0.0.1.txt"]
        }
        #expect(readFile(folder.file("inbox/receiver.py")) == Array("content of /receiver.py".utf8))
        withExtendedLifetime(receiver) {}
    }

    @Test func `Every alert links to its remedy`() throws {
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
