import Base
import Core
import TestSupport
import Testing
import TransferEngine

@Suite struct FaultTests {
    @Test func `A body that ends early is short, and its bytes are kept`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/length", .generated(seed: 1, length: 200_000), always: [.cut(after: 100_000)])
        harness.origin.serve(
            "/chunked", .generated(seed: 1, length: 200_000), always: [.chunked(size: 10_000), .cut(after: 100_000)])
        for path in ["/length", "/chunked"] {
            let result = try await harness.run(harness.request(path))
            #expect(result.outcome == .failed(.shortBody))
            #expect(result.length == 100_000)
            #expect(result.bytes == Content.bytes(seed: 1, length: 100_000))
            #expect(result.curlCode == 18)
        }
    }

    @Test func `A reset is reported as a reset`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 2, length: 200_000), always: [.cut(after: 100_000, .reset)])
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .failed(.reset), "\(result.curlCode) \(result.curlMessage) \(result.length)")
        #expect(result.length <= 100_000)
    }

    @Test(arguments: [
        (["10", "11"], TransferFault.twoLengths), (["10, 11"], .twoLengths), (["+10"], .unparsableResponse),
        (["-5"], .unparsableResponse), (["abc"], .unparsableResponse),
        (["12345678901234567890123"], .unparsableResponse), (["1234567890123456789"], .unparsableResponse),
    ])
    func `Untrustworthy lengths are refused before the body`(lines: [String], fault: TransferFault)
        async throws
    {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 3, length: 10), always: [.contentLength(lines)])
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .failed(fault))
        #expect(result.length == 0)
    }

    @Test func `The same length twice is one length`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 4, length: 10), always: [.contentLength(["10", "10"])])
        #expect(try await harness.run(harness.request("/")).outcome == .complete)
    }

    /// Invalid bytes of an origin; the name replaces the bytes in the output of the tests.
    struct NoAnswer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let text: String
        let fault: TransferFault

        init(_ name: String, _ text: String, _ fault: TransferFault) {
            (testDescription, self.text, self.fault) = (name, text, fault)
        }
    }

    @Test(arguments: [
        NoAnswer("other words", "HELLO\r\n\r\n", .unparsableResponse),
        NoAnswer("no status", "HTTP/1.1 abc OK\r\n\r\n", .unparsableResponse), NoAnswer("nothing", "", .emptyReply),
        NoAnswer("a long field", "HTTP/1.1 200 OK\r\nX: " + String(repeating: "a", count: 200_000), .headersTooLarge),
        NoAnswer(
            "many fields",
            "HTTP/1.1 200 OK\r\n" + String(repeating: "X: " + String(repeating: "a", count: 1000) + "\r\n", count: 300),
            .headersTooLarge),
    ])
    func `Unparsable responses are distinguished`(answer: NoAnswer) async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .text(""), always: [.raw(answer.text)])
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .failed(answer.fault), "\(result.curlCode) \(result.curlMessage)")
    }

    @Test func `A folded field belongs to the preceding one`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .text(""), always: [.raw("HTTP/1.1 200 OK\r\nX-One: a\r\n  b\r\nContent-Length: 2\r\n\r\nhi")])
        let result = try await harness.run(harness.request("/"))
        #expect(result.outcome == .complete)
        #expect(result.head?.fields["X-One"] == "a b")
        #expect(result.bytes == Array("hi".utf8))
    }

    @Test func `Silence ends with the idle timeout`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/body", .generated(seed: 5, length: 200_000), always: [.stall(after: 100_000)])
        harness.origin.serve("/head", .text(""), always: [.stall(after: 0), .delayHead(.seconds(60))])
        for (path, length) in [("/body", Int64(100_000)), ("/head", 0)] {
            let result = try await harness.run(harness.request(path) { $0.idleTimeout = .seconds(2) })
            #expect(result.outcome == .failed(.idleTimeout))
            #expect(result.length == length)
        }
    }

    @Test func `A trickle keeps an exchange alive until the total timeout`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve(
            "/", .generated(seed: 6, length: 1000), always: [.trickle(size: 1, pause: .milliseconds(50))])
        let result = try await harness.run(
            harness.request("/") {
                $0.idleTimeout = .seconds(3)
                $0.totalTimeout = .seconds(5)
            })
        #expect(result.outcome == .failed(.totalTimeout))
        #expect(result.length > 0)
    }

    @Test func `A port without a listener refuses`() async throws {
        let harness = try EngineHarness()
        let url = harness.origin.url("/")
        harness.origin.stop()
        // The listener exists until its last thread has ended.
        try await eventually("a refusal") {
            try await harness.run(
                harness.request(url) {
                    $0.idleTimeout = .milliseconds(200)
                }
            ).outcome
                == .failed(.connectFailed)
        }
    }

    @Test func `A full disk is reported with its errno and the written bytes`() async throws {
        let harness = try EngineHarness()
        harness.origin.serve("/", .generated(seed: 7, length: 200_000))
        let missing = try await harness.run(
            harness.request("/") { $0.sink = .content(path: harness.folder.file("no/such/folder")) })
        #expect(missing.outcome == .failed(.disk(errno: 2)))
        let full = try await harness.run(harness.request("/") { $0.sink = .content(path: "/dev/full") })
        guard case .failed(.disk) = full.outcome else {
            Issue.record("\(full.outcome)")
            return
        }
    }

    @Test func `Header fields cannot inject lines`() async throws {
        let harness = try EngineHarness()
        let result = try await harness.run(
            harness.request("/") { $0.headers.append("X-One", "a\r\nX-Two: b") })
        #expect(result.outcome == .failed(.badRequest))
        #expect(harness.origin.requests.isEmpty)
    }

    @Test func `Shutdown stops transfers and keeps their bytes`() async throws {
        let harness = try EngineHarness(threads: 2)
        let gate = Gate()
        harness.origin.serve("/", .generated(seed: 8, length: 300_000), always: [.holdBody(after: 200_000, gate)])
        let requests = (0..<8).map { _ in harness.request("/") }
        for request in requests { harness.engine.start(request) }
        for request in requests {
            try await eventually("bytes") { harness.engine.progress(request.id)?.length == 200_000 }
        }
        await harness.engine.shutdown(within: .seconds(60))
        for request in requests {
            let result = try await harness.result(of: request)
            #expect(result.outcome == .stopped)
            #expect(result.length == 200_000)
        }
        let late = harness.request("/")
        #expect(try await harness.run(late).outcome == .stopped)
    }
}
