import Base
import Glibc
import TestSupport
import Testing

/// What operators rely on: the health check, a log that nobody reads, memory that clients cannot drive up.
@Suite struct OperatingTests {
    private func check(_ words: String..., environment: [String: String] = [:]) async throws
        -> ServiceProcess.ExitStatus
    {
        try await ServiceProcess.run(["healthcheck"] + words, environment: environment).status
    }

    @Test func `The health check finds names, IPv6 and what the listener's setting says`() async throws {
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

    @Test func `The health check speaks TLS where the listener does`() async throws {
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

    @Test func `A full pipe behind standard error holds up nobody`() async throws {
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
        // Each ping is a line of the log.
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
        // Nobody reads the farewell; it is waited for only so long.
        for _ in 0..<60 { _ = try await service.api.post("/v1/app/webhook/ping") }
        #expect(try await service.terminate(within: .seconds(30)) == .exited(0))
    }

    @Test func `Lines that are no tasks cost no memory`() async throws {
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
