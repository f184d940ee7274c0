import Base
import Core
import Formats
import TestSupport
import Testing
import TransferEngine

@Suite(.enabled(if: TLSOrigin.isAvailable, "nginx and openssl are installed")) struct TLSTests {
    @Test func `A trusted server uses HTTP/2, and transfers share its connection`() async throws {
        let harness = try EngineHarness()
        // More requests than the limit of a connection: a GOAWAY in between fails no transfer.
        let origin = try await TLSOrigin(settings: "keepalive_requests 50;")
        for number in 0..<200 {
            origin.folder.write(Content.bytes(seed: UInt64(number), length: number * 2000), to: "www/\(number)")
        }
        let requests = (0..<200).map { number in
            harness.request(origin.url("/\(number)")) {
                $0.tls.caFile = origin.caFile
            }
        }
        // Requests do not wait for the first handshake: later ones share its connection.
        harness.engine.start(requests[0])
        _ = try await harness.result(of: requests[0])
        for request in requests.dropFirst() { harness.engine.start(request) }
        var shared = 0
        for (number, request) in requests.enumerated() {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .complete)
            #expect(result.length == Int64(number * 2000))
            #expect(
                result.digests[.sha256].map(Content.hex) == Content.sha256(seed: UInt64(number), length: number * 2000))
            #expect(result.metrics.networkProtocolName == "h2")
            #expect(result.metrics.negotiatedTLSProtocolVersion == "TLSv1.3")
            #expect(result.metrics.negotiatedTLSCipherSuite?.hasPrefix("TLS_") == true)
            if result.metrics.isReusedConnection { shared += 1 }
        }
        #expect(shared > 20)
    }

    @Test func `Long files arrive unchanged over HTTP/2, more of them than there are buffers`() async throws {
        let harness = try EngineHarness(buffers: 4)
        let origin = try await TLSOrigin(settings: "dav_methods PUT; client_max_body_size 0;")
        let part = Content.bytes(seed: 3, length: 70_001)
        let content: [UInt8] = (0..<40).reduce(into: []) { content, _ in content += part }
        let path = harness.folder.write(content, to: "body")
        let requests = (0..<6).map { number in
            harness.request(origin.url("/\(number)")) {
                $0.method = "PUT"
                $0.body = .file(path: path, offset: 0, length: Int64(content.count))
                $0.tls.caFile = origin.caFile
            }
        }
        for request in requests { harness.engine.start(request) }
        for (number, request) in requests.enumerated() {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .complete)
            #expect(result.metrics.networkProtocolName == "h2")
            #expect(origin.file("www/\(number)") == content)
        }
    }

    @Test func `An untrusted server is reported with its key, and the key can be trusted`() async throws {
        let harness = try EngineHarness()
        let origin = try await TLSOrigin(name: "DNS:elsewhere.test")
        let pin = try await origin.pin()
        let untrusted = try await harness.run(harness.request(origin.url("/client")))
        #expect(untrusted.outcome == .failed(.certificateUntrusted))
        #expect(untrusted.serverPublicKey == pin)
        #expect(untrusted.head == nil)
        let trusted = try await harness.run(
            harness.request(origin.url("/client")) {
                $0.tls.trustedServerKey = pin
            })
        #expect(trusted.outcome == .complete)
        // A request without that trust does not use the connection.
        let again = try await harness.run(harness.request(origin.url("/client")))
        #expect(again.outcome == .failed(.certificateUntrusted))
    }

    @Test func `Pins apply beside the certificate and beside trust in a key`() async throws {
        let harness = try EngineHarness()
        let origin = try await TLSOrigin()
        let pin = try await origin.pin()
        let other = "sha256/" + String(repeating: "A", count: 43) + "="
        func outcome(pins: [String], trusting key: String? = nil) async throws -> ExchangeOutcome {
            try await harness.run(
                harness.request(origin.url("/client")) {
                    $0.tls.pinnedPublicKeys = pins
                    $0.tls.trustedServerKey = key
                    $0.tls.caFile = origin.caFile
                }
            ).outcome
        }
        #expect(try await outcome(pins: [other, pin]) == .complete)
        #expect(try await outcome(pins: [other]) == .failed(.pinMismatch))
        #expect(try await outcome(pins: [], trusting: other) == .failed(.pinMismatch))
        #expect(try await outcome(pins: [other], trusting: pin) == .failed(.pinMismatch))
        #expect(try await outcome(pins: [pin], trusting: pin) == .complete)
    }

    @Test func `The reasons for an untrusted certificate are distinguished`() async throws {
        let harness = try EngineHarness()
        let elsewhere = try await TLSOrigin(name: "DNS:elsewhere.test")
        let expired = try await TLSOrigin(validity: ("20200101000000Z", "20200102000000Z"))
        let early = try await TLSOrigin(validity: ("20900101000000Z", "20910101000000Z"))
        for (origin, fault) in [
            (elsewhere, TransferFault.certificateWrongHost), (expired, .certificateExpired),
            (early, .certificateNotYetValid),
        ] {
            let result = try await harness.run(
                harness.request(origin.url("/client")) {
                    $0.tls.caFile = origin.caFile
                })
            #expect(result.outcome == .failed(fault), "\(result.curlMessage)")
            #expect(result.serverPublicKey != nil)
        }
    }

    @Test func `A client sends its certificate`() async throws {
        let harness = try EngineHarness()
        let origin = try await TLSOrigin()
        var certificate = ClientCertificate(certificates: origin.file("client.pem"), key: origin.file("client.key"))
        func run(pool: Int64) async throws -> ExchangeResult {
            let certificate = certificate
            return try await harness.run(
                harness.request(origin.url("/client")) {
                    $0.pool = pool
                    $0.tls.caFile = origin.caFile
                    $0.tls.clientCertificate = certificate
                })
        }
        #expect(try await run(pool: 1).bytes == Array("SUCCESS".utf8))
        certificate.key = Array("no key".utf8)
        #expect(try await run(pool: 2).outcome == .failed(.clientCertificateInvalid))
    }

    @Test func `A server with an old TLS version is refused`() async throws {
        let harness = try EngineHarness()
        let origin = try await TLSOrigin(protocols: "TLSv1.2")
        let result = try await harness.run(
            harness.request(origin.url("/client")) {
                $0.tls.caFile = origin.caFile
                $0.tls.minimumVersion = .tls13
            })
        #expect(result.outcome == .failed(.tlsHandshake(interrupted: false)), "\(result.curlMessage)")
    }

    @Test func `A broken handshake is an interruption`() async throws {
        let harness = try EngineHarness()
        // An origin that closes on unknown input.
        let result = try await harness.run(
            harness.request("https://127.0.0.1:\(harness.origin.port)/"))
        #expect(result.outcome == .failed(.tlsHandshake(interrupted: true)), "\(result.curlMessage)")
    }
}
