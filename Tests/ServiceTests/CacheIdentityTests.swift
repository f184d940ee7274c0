import Core
import Formats
import Store
import TestSupport
import Testing
import TransferEngine

@testable import Service
@testable import Transfers

/// A response is shared only with tasks that present the same identity to every server on its way.
struct CacheIdentityTests {
    private static let key = CacheKey(
        ParsedURL(text: TransferTests.url, isSecure: true, host: "a.example", port: 443), HTTPFields(), cookies: [],
        credential: nil, SessionConfiguration())

    private func known(_ realm: String) -> KnownCredential {
        KnownCredential(
            credentialId: realm,
            space: ProtectionSpace(
                host: "a.example", port: 443, scheme: "https", realm: realm, authenticationMethod: .basic),
            credential: Credential(user: realm, password: "p"), createdAt: TransferTests.now)
    }

    @Test func `A response to a cookie that is sent behind a redirect is not shared`() async throws {
        try await ServiceStage.run { stage in
            let (other, gate) = (try OriginServer(address: 0x7F00_0002), Gate())
            let host = "http://127.0.0.2:\(other.port)"
            other.serve("/login", .text("x"), always: [.header("Set-Cookie", "sid=1; Path=/")])
            other.serve("/a", .generated(seed: 1, length: 100_000), always: [.hold(gate)])
            stage.origin.serve("/a", .text(""), always: [.redirect(host + "/a")])
            let sessions = [
                try await stage.session("one") { $0.requestCachePolicy = .returnCacheDataElseLoad },
                try await stage.session("two") { $0.requestCachePolicy = .returnCacheDataElseLoad },
            ]
            _ = try await stage.run(.download, "GET", host + "/login", in: sessions[0])
            var tasks = try await stage.create(stage.order("/a"), in: sessions[0])
            try await eventually("the target is requested") { other.requests("/a").count == 1 }
            tasks += try await stage.create(stage.order("/a"), in: sessions[1])
            try await eventually("it is requested without the cookie as well") { other.requests("/a").count == 2 }
            gate.open()
            for task in tasks { #expect(try await stage.completed(task).outcome == .succeeded) }
            #expect(other.requests("/a").map { $0.fields["Cookie"] } == ["sid=1", nil])
            // That response may be used by others.
            let third = try await stage.completed(stage.create(stage.order("/a"), in: sessions[0])[0])
            #expect(third.result?.cacheStatus == .hit)
            #expect(other.requests("/a").count == 2)
        }
    }

    @Test func `A task that sends another credential after a challenge consults the cache again`() throws {
        var transfer = try TransferTests.transfer { $0.request.cachePolicy = .useProtocolCachePolicy }
        let found = Access.Found(stored: [known("r"), known("s")])
        func feed(_ event: Transfer.Event) -> String {
            transfer.handle(event, in: TransferTests.world()).map(\.word).joined(separator: " ")
        }
        _ = feed(.begin)
        #expect(feed(.authorized(found)) == "consult")
        let former = transfer.cacheQuestion(cookies: []).key
        transfer.attempt.reuse = Reuse(key: former)
        #expect(feed(.consulted(.load(confirming: nil, leads: true))) == "start")
        let refusal = TransferTests.result(
            .complete, TransferTests.head(401, [("WWW-Authenticate", "Basic realm=\"s\"")]))
        #expect(feed(.ended(ExchangeID(rawValue: 9), refusal)) == "authorize")
        #expect(feed(.authorized(found)) == "consult")
        #expect(transfer.cacheQuestion(cookies: []).key != former)
    }

    @Test func `Cookies that are stored after the cache was consulted keep the response private`() throws {
        let line = "a.example\tFALSE\t/\tFALSE\t0\tsid\t1"
        for isOther in [false, true] {
            var transfer = try TransferTests.transfer()
            transfer.attempt.reuse = Reuse(key: Self.key, leads: true)
            #expect(transfer.noteIdentity(isOther ? [line] : [], at: transfer.taskURL) == isOther)
            #expect(transfer.attempt.reuse?.isPrivate == isOther)
        }
    }

    @Test func `Cookies that the key names may follow a redirect within the origin`() throws {
        let line = "a.example\tFALSE\t/\tFALSE\t0\tsid\t1"
        var transfer = try TransferTests.transfer()
        transfer.attempt.reuse = Reuse(key: transfer.cacheQuestion(cookies: [line]).key, leads: true)
        #expect(try !transfer.noteIdentity([line], at: ParsedURL("https://a.example/files/1")))
        #expect(try transfer.noteIdentity([line], at: ParsedURL("https://b.example/files/1")))
    }

    @Test func `Nothing of a redirect, or of a range that the task alone requested, is shared`() throws {
        func sharing(
            _ status: Int, _ verdict: ResumeVerdict, from url: String = TransferTests.url
        ) throws -> Sharing? {
            var transfer = try TransferTests.transfer()
            transfer.attempt.reuse = Reuse(key: Self.key, leads: true)
            transfer.request.url = try ParsedURL(url)
            let head = TransferTests.head(status)
            var result = TaskResult()
            result.response = TaskResponse(head, url: transfer.request.url)
            return transfer.sharing(
                result, TransferTests.result(.complete, head, verdict, .memory([1]), length: 1), TransferTests.world())
        }
        #expect(try sharing(200, .append(at: 0))?.cached.isRedirected == false)
        #expect(try sharing(200, .append(at: 0), from: "https://b.example/x")?.cached.isRedirected == true)
        #expect(try sharing(302, .notADownload(status: 302)) == nil)
        #expect(try sharing(416, .alreadyComplete) == nil)
        #expect(try sharing(404, .notADownload(status: 404)) != nil)
    }
}
