import Base
import Core
import TestSupport
import Testing
import TransferEngine

@Suite struct ConnectionTests {
    @Test func `Connections are reused within a pool and never across pools`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("x"))
        var ports: [Int64: Set<Int>] = [:]
        for round in 0..<3 {
            for pool in [Int64(1), 2] {
                let result = try await harness.run(harness.request("/") { $0.pool = pool })
                #expect(result.metrics.isReusedConnection == (round > 0))
                if let port = result.metrics.localPort { ports[pool, default: []].insert(port) }
            }
        }
        #expect(ports[1]?.count == 1)
        #expect(ports[2]?.count == 1)
        #expect(ports[1] != ports[2])
    }

    @Test func `The machine's addresses are those of its interfaces`() throws {
        let addresses = try #require(MachineAddresses.current())
        #expect(addresses.contains(.v4(0x7F00_0001)))
    }

    @Test func `Closed connections are not reused`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("x"))
        try await harness.run(harness.request("/"))
        harness.engine.closeConnections(pool: 1)
        let result = try await harness.run(harness.request("/"))
        #expect(!result.metrics.isReusedConnection)
    }

    @Test func `A private address is refused before a byte arrives`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("x"))
        let port = harness.origin.port
        for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"] {
            let result = try await harness.run(
                harness.request("http://\(host):\(port)/") {
                    $0.egress = EgressPolicy()
                })
            #expect(result.outcome == .failed(.egressDenied), "\(host)")
        }
        #expect(harness.origin.requests.isEmpty)
        #expect(harness.origin.openConnections == 0)
    }

    @Test func `One forbidden address of the resolver refuses the attempt`() async throws {
        let harness = try EngineHarness { _ in .addresses([.v4(0x7F00_0001), .v4(0x0A00_0001)]) }
        harness.origin.serve("/", .text("x"))
        let result = try await harness.run(
            harness.request("http://example.test:\(harness.origin.port)/"))
        #expect(result.outcome == .failed(.egressDenied))
        #expect(harness.origin.requests.isEmpty)
    }

    @Test func `A reused connection is judged again`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text("x"))
        let url = "http://localhost:\(harness.origin.port)/"
        let open = EgressPolicy(allowed: EngineHarness.loopback.allowed + [CIDR(.v6(1), 128)])
        #expect(
            try await harness.run(
                harness.request(url) {
                    $0.egress = open
                }
            ).outcome == .complete)
        // The same pool, by address: only the socket's own address is known to be 127.0.0.1.
        let result = try await harness.run(
            harness.request(url) {
                $0.egress = EgressPolicy()
            })
        #expect(result.outcome == .failed(.egressDenied))
        #expect(harness.origin.requests.count == 1)
    }

    @Test func `Names are resolved once and pinned`() async throws {
        let lookUps = Locked<[String]>([])
        let harness = try EngineHarness { name in
            lookUps.withLock { $0.append(name) }
            return .addresses([.v4(0x7F00_0001)])
        }
        harness.origin.serve("/", .text("x"))
        for _ in 0..<3 {
            let result = try await harness.run(
                harness.request("http://Example.TEST:\(harness.origin.port)/"))
            #expect(result.outcome == .complete)
            #expect(result.metrics.remoteAddress == "127.0.0.1")
        }
        #expect(lookUps.withLock { $0 } == ["example.test"])
        #expect(harness.origin.requests.allSatisfy { $0.fields["Host"]?.hasPrefix("example.test") == true })
    }

    @Test func `The resolver's errors are distinguished`() async throws {
        let harness = try EngineHarness { $0 == "missing.test" ? .doesNotExist : .failed }
        for (host, fault) in [("missing.test", TransferFault.nameDoesNotExist), ("broken.test", .couldNotResolve)] {
            let result = try await harness.run(harness.request("http://\(host)/"))
            #expect(result.outcome == .failed(fault))
        }
    }

    @Test func `A hanging resolver ends with the connect timeout`() async throws {
        let gate = Gate()
        let harness = try EngineHarness { _ in
            gate.pass()
            return .failed
        }
        defer { gate.open() }
        let result = try await harness.run(
            harness.request("http://slow.test/") {
                $0.connectTimeout = .milliseconds(200)
            })
        #expect(result.outcome == .failed(.couldNotResolve))
    }

    @Test func `The times of the metrics are in order`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 1, length: 50_000), always: [.delayHead(.milliseconds(50))])
        let metrics = try await harness.run(harness.request("/")).metrics
        let times = [
            metrics.fetchStartDate, metrics.connectStartDate, metrics.connectEndDate, metrics.requestStartDate,
            metrics.responseStartDate, metrics.responseEndDate,
        ]
        let known = times.compactMap { $0 }
        #expect(known == known.sorted())
        #expect(known.count >= 5)
        #expect(metrics.networkProtocolName == "http/1.1")
        #expect(metrics.remotePort == Int(harness.origin.port))
        #expect(metrics.countOfResponseBodyBytesReceived == 50_000)
        #expect(metrics.countOfRequestHeaderBytesSent > 0)
        #expect(metrics.countOfResponseHeaderBytesReceived > 0)
    }

    @Test func `A proxy's address is judged too, and used instead of the origin's`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/x", .text("by proxy"))
        let proxy = ProxySettings(kind: .http, host: "127.0.0.1", port: harness.origin.port)
        let denied = try await harness.run(
            harness.request("http://93.184.216.34/x") {
                $0.proxy = proxy
                $0.egress = EgressPolicy()
            })
        #expect(denied.outcome == .failed(.egressDenied))
        #expect(harness.origin.requests.isEmpty)
        let result = try await harness.run(
            harness.request("http://93.184.216.34/x") {
                $0.proxy = proxy
            })
        #expect(result.metrics.isProxyConnection)
        #expect(harness.origin.requests.map(\.target) == ["http://93.184.216.34/x"])
        let inner = try await harness.run(
            harness.request("http://10.0.0.1/x") {
                $0.proxy = proxy
            })
        #expect(inner.outcome == .failed(.egressDenied))
    }
}
