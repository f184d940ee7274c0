import Base
import Glibc
import TestSupport
import Testing

/// Operation: the health check, a log without a reader, memory that clients cannot exhaust.
@Suite struct OperatingTests {
    private func check(_ words: String..., environment: [String: String] = [:]) async throws
        -> ServiceProcess.ExitStatus
    {
        try await ServiceProcess.run(["healthcheck"] + words, environment: environment).status
    }

    @Test func `The health check accepts names, IPv6 and the listener's setting`() async throws {
        let four = try await ServiceProcess()
        let six = try await ServiceProcess(["--listen", "[::1]:0"])
        #expect(try await check("http://localhost:\(four.port)") == .exited(0))
        #expect(try await check("http://127.0.0.1:\(four.port)/") == .exited(0))
        #expect(try await check("http://[::1]:\(six.port)") == .exited(0))
        #expect(try await check("http://localhost:\(six.port)") == .exited(0))
        for listen in ["localhost:\(four.port)", "127.0.0.1:\(four.port)", "0.0.0.0:\(four.port)"] {
            let environment = ["URLSESSIOND_LISTEN": listen, "URLSESSIOND_PUBLIC_URL": "https://example.com"]
            #expect(try await check(environment: environment) == .exited(0), "\(listen)")
        }
        for listen in ["[::1]:\(six.port)", "[::]:\(six.port)"] {
            let environment = ["URLSESSIOND_LISTEN": listen, "URLSESSIOND_PUBLIC_URL": "https://example.com"]
            #expect(try await check(environment: environment) == .exited(0), "\(listen)")
        }
        #expect(try await check("--listen", "[::1]:\(six.port)") == .exited(0))
        try await four.kill()
        #expect(try await check("http://localhost:\(four.port)") == .exited(1))
    }

    @Test(arguments: [
        "serve", "check-config", "backup", "export", "import", "healthcheck", "man", "help", "version",
    ])
    func `Each command prints its help, and does nothing else`(_ command: String) async throws {
        let folder = TemporaryFolder()
        for words in [[command, "--help"], [command, "--data-dir", folder.file("data"), "-h"]] {
            let ended = try await ServiceProcess.run(words)
            #expect(ended.status == .exited(0) && ended.errors.isEmpty, "\(words): \(ended)")
            let name = command == "version" ? "--version" : command
            #expect(ended.output.hasPrefix("usage: urlsessiond \(name)"), "\(words): \(ended.output)")
            let hasFlags = !["man", "help", "version"].contains(command)
            #expect(ended.output.contains("  --listen ADDR:PORT") == hasFlags, "\(words): \(ended.output)")
        }
        #expect(filesBelow(folder.path).isEmpty)
        #expect(try await ServiceProcess.run(["nothing", "--help"]).status == .exited(64))
        let calls = try await ServiceProcess.run(["--help"]).output.split(separator: "\n")
        #expect(calls.contains { $0.hasPrefix("urlsessiond \(command == "version" ? "--version" : command)") })
    }

    @Test func `The health check uses TLS if the listener does`() async throws {
        let folder = TemporaryFolder()
        let (certificate, key) = (folder.file("c.pem"), folder.file("k.pem"))
        try await ChildProcess.run([
            "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=service.example", "-keyout", key, "-out", certificate,
        ])
        let service = try await ServiceProcess(["--tls-certificate", certificate, "--tls-key", key])
        #expect(try await check("https://localhost:\(service.port)") == .exited(0))
        let environment = [
            "URLSESSIOND_LISTEN": "127.0.0.1:\(service.port)", "URLSESSIOND_TLS_CERTIFICATE": certificate,
            "URLSESSIOND_TLS_KEY": key,
        ]
        #expect(try await check(environment: environment) == .exited(0))
        #expect(try await check("http://localhost:\(service.port)") == .exited(1))
    }

    @Test func `SIGHUP renews certificate, operator's key and log level, and refuses invalid ones`() async throws {
        let folder = TemporaryFolder()
        let (certificate, key, adminKey) = (folder.file("c.pem"), folder.file("k.pem"), folder.file("admin.key"))
        func issue(_ name: String, key: String) async throws {
            try await ChildProcess.run([
                "/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", "/CN=\(name)", "-keyout", key, "-out", certificate,
            ])
        }
        func write(_ text: String, to name: String) { folder.write(Array(text.utf8), to: name) }
        func admin(_ number: String) -> String { "Authorization: Bearer the operator's \(number) key, long enough" }
        try await issue("first.example", key: key)
        write(#"{"log-level": "info"}"#, to: "settings.json")
        write("the operator's first key, long enough\n", to: "admin.key")
        let service = try await ServiceProcess(
            [
                "--tls-certificate", certificate, "--tls-key", key, "--config", folder.file("settings.json"),
                "--admin-key-file", adminKey,
            ], dev: false)
        /// curl's output: the response, its status, and the server's certificates.
        func curl(_ path: String, _ more: String...) async throws -> String {
            let output = try await ChildProcess.run(
                ["/usr/bin/curl", "-q", "-ks", "--noproxy", "*", "-w", "\n%{http_code}\n%{certs}"] + more
                    + ["https://127.0.0.1:\(service.port)\(path)"], within: .seconds(90))
            return String(decoding: output, as: UTF8.self)
        }
        #expect(try await curl("/healthz").contains("first.example"))
        let json = "Content-Type: application/json"
        let made = try await curl("/v1/apps", "-H", admin("first"), "-H", json, "-d", #"{"identifier": "a"}"#)
        let app = try #require(try JSON(parsing: String(made.prefix { $0 != "\n" }))["apiKey"].string)
        func call(_ path: String, _ more: String...) async throws -> String {
            try await curl(path, "-H", "Authorization: Bearer \(app)", "-H", json, more[0], more[1])
        }
        _ = try await call("/v1/sessions/s", "-X", "PUT")
        let task = #"{"kind": "download", "request": {"url": "https://a.example/"}, "state": "suspended"}"#
        #expect(try await call("/v1/sessions/s/tasks", "-d", task).contains("\n201\n"))
        // One request is held across the renewal.
        async let held = call("/v1/sessions/s/tasks/1?wait=60", "-X", "GET")
        // All metrics are longer than a pipe's buffer.
        let count = "curl -qks --noproxy '*' -H \"$1\" \"$2\" | grep '^urlsessiond_http_requests_held '"
        let metrics = "https://127.0.0.1:\(service.port)/metrics"
        try await eventually("the request is held") {
            try await ChildProcess.run(["/bin/sh", "-c", count, "sh", admin("first"), metrics])
                == Array("urlsessiond_http_requests_held 1\n".utf8)
        }

        try await issue("second.example", key: key)
        write("the operator's second key, long enough\n", to: "admin.key")
        write(#"{"log-level": "debug"}"#, to: "settings.json")
        service.signal(SIGHUP)
        try await eventually("the new key is taken") {
            try await curl("/v1/apps", "-H", admin("second")).contains("\n200\n")
        }
        #expect(try await curl("/v1/apps", "-H", admin("first")).contains("\n401\n"))
        #expect(try await curl("/healthz").contains("second.example"))
        try await eventually("requests are logged") { service.errors.contains("request answered") }
        _ = try await call("/v1/sessions/s/tasks/1/cancel", "-X", "POST")
        let answered = try await held
        #expect(answered.contains("first.example") && answered.contains("\n200\n"), "\(answered)")

        // A certificate of another key, and an operator's key that can be guessed.
        try await issue("third.example", key: folder.file("other.pem"))
        write("short\n", to: "admin.key")
        service.signal(SIGHUP)
        try await eventually("both are refused") {
            service.errors.contains("new certificate is invalid")
                && service.errors.contains("new operator's key is invalid")
        }
        #expect(try await curl("/healthz").contains("second.example"))
        #expect(try await curl("/v1/apps", "-H", admin("second")).contains("\n200\n"))
        write(#"{"log-level": "loud"}"#, to: "settings.json")
        service.signal(SIGHUP)
        try await eventually("faults are told") { service.errors.contains("no file was read again") }
        #expect(try await service.terminate() == .exited(0))
    }

    @Test func `A service that gets SIGTERM as it begins to listen ends in order`() async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask {
                    // The reader of the line reacts at once, before any other process.
                    let script = #"mkfifo "$0"; (read -r line; kill $$; echo "$line") <"$0" & exec "$@" >"$0""#
                    let data = TemporaryFolder()
                    let service = try await ServiceProcess(
                        data: data, wrapper: ["/bin/sh", "-c", script, data.file("output")])
                    #expect(try await service.waitForExit() == .exited(0), "\(service.errors)")
                    #expect(service.errors.contains("shutting down"))
                }
            }
            try await group.waitForAll()
        }
    }

    @Test func `A full pipe at standard error delays no request`() async throws {
        let folder = TemporaryFolder()
        let pipe = folder.file("log")
        #expect(mkfifo(pipe, 0o600) == 0)
        // Open for both, so that neither side waits for the other; and of one page, so that it is full soon.
        let descriptor = open(pipe, O_RDWR | O_CLOEXEC | O_NONBLOCK)
        defer { close(descriptor) }
        let setPipeSize: Int32 = 1031  // F_SETPIPE_SZ
        #expect(fcntl(descriptor, setPipeSize, 4096) == 4096)
        let service = try await ServiceProcess(wrapper: ["/bin/sh", "-c", "exec 2>'\(pipe)'; exec \"$@\"", "sh"])
        let receiver = try Receiver()
        #expect(try await service.api.patch("/v1/app", ["webhook": ["url": .string(receiver.url)]]).status == 200)
        // Each ping is a log line.
        for _ in 0..<60 {
            let answer = try await service.api.send("POST", "/v1/app/webhook/ping", body: [], within: .seconds(20))
            #expect(answer.status == 200)
        }
        var text = ""
        try await eventually("the log has all of it once it is read") {
            var bytes = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &bytes, bytes.count)
            if count > 0 { text += String(decoding: bytes[..<count], as: UTF8.self) }
            return text.split(separator: "\n").count { $0.contains("webhook pinged") } == 60
        }
        // The last lines have no reader; the wait for it has a limit.
        for _ in 0..<60 { _ = try await service.api.post("/v1/app/webhook/ping") }
        #expect(try await service.terminate(within: .seconds(30)) == .exited(0))
    }

    @Test func `Lines that are not tasks use no memory`() async throws {
        let scene = try await Scene()
        func peak() -> Int {
            let status = readFile("/proc/\(scene.service.pid)/status") ?? []
            let line = String(decoding: status, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("VmHWM:") }
            return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
        }
        let before = peak()
        let answer = try await scene.api.send(
            "POST", "/v1/sessions/s/tasks", headers: [("Content-Type", "application/x-ndjson")],
            body: [UInt8](repeating: UInt8(ascii: "x"), count: 1_000_000).flatMap { [$0, UInt8(ascii: "\n")] })
        #expect(answer.status == 200)
        #expect(before > 0)
        let grown = (peak() - before) / 1024
        #expect(grown < 64, "\(grown) MiB")
    }
}
