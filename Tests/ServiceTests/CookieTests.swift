import Core
import Store
import TestSupport
import Testing

@testable import Service
@testable import Transfers

struct CookieTests {
    private func cookies(_ origin: OriginServer, _ path: String) -> [String?] {
        origin.requests(path).map { $0.fields["Cookie"] }
    }

    private let setsOne = Misbehaviour.header("Set-Cookie", "one=1; Path=/")

    @Test func `A response's cookies are sent with the session's next request, and not with another session's`()
        async throws
    {
        let stage = try await ServiceStage.start()
        let origin = try OriginServer()
        origin.serve("/set", .text("x"), always: [setsOne])
        origin.serve("/get", .text("x"))
        let session = try await stage.session()
        try await stage.run(.download, "GET", origin.url("/set"), in: session)
        try await stage.run(.download, "GET", origin.url("/get"), in: session)
        try await stage.run(.download, "GET", origin.url("/get"), in: try await stage.session("other"))
        #expect(cookies(origin, "/get") == ["one=1", nil])
    }

    @Test func `Cookies survive a restart, sealed`() async throws {
        let origin = try OriginServer()
        origin.serve("/set", .text("x"), always: [.header("Set-Cookie", "one=canary-cookie; Path=/")])
        origin.serve("/get", .text("x"))
        let folder = TemporaryFolder()
        let first = try await ServiceStage.start(folder: folder)
        try await first.run(.download, "GET", origin.url("/set"), in: try await first.session())
        await first.stop()
        for file in filesBelow(folder.file("data")) {
            let text = String(decoding: readFile(folder.file("data/\(file)")) ?? [], as: UTF8.self)
            #expect(!text.contains("canary-cookie"), "\(file)")
        }
        let second = try await ServiceStage.start(folder: folder)
        try await second.run(.download, "GET", origin.url("/get"), in: try await second.session())
        #expect(cookies(origin, "/get") == ["one=canary-cookie"])
        await second.stop()
    }

    @Test func `A reset deletes the cookies`() async throws {
        let origin = try OriginServer()
        origin.serve("/set", .text("x"), always: [setsOne])
        origin.serve("/get", .text("x"))
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        try await stage.run(.download, "GET", origin.url("/set"), in: session)
        _ = try await stage.service.resetSession(session.id)
        try await stage.run(.download, "GET", origin.url("/get"), in: session)
        #expect(cookies(origin, "/get") == [nil])
        #expect(try await stage.service.store.sessions.cookies(of: session.id).isEmpty)
    }

    @Test func `A node reads another node's changes to a jar, unless it has changed the jar itself`() async throws {
        let stage = try await ServiceStage.start()
        let store = stage.service.store
        stage.origin.serve("/set", .text("x"), always: [setsOne])
        let session = try await stage.session()
        try await stage.run(.download, "GET", stage.origin.url("/set"), in: session)
        let jars = CookieJars(isShared: true)
        func lines() -> [String] { jars.lines(of: session.id, for: "127.0.0.1", at: stage.service.clock.now) }
        try await jars.hold(session.id, store)
        try #require(lines().count == 1)
        _ = try await store.sessions.reset(session.id)
        try await jars.refresh(session.id, store)
        #expect(lines().isEmpty)
        let own = "127.0.0.1\tFALSE\t/\tFALSE\t0\town\t2"
        jars.merge(session.id, given: [], returned: [own], accepts: true, at: stage.service.clock.now)
        try await jars.refresh(session.id, store)
        #expect(lines() == [own])
    }

    @Test func `A request's own cookies take precedence, and a session may send none`() async throws {
        let origin = try OriginServer()
        origin.serve("/set", .text("x"), always: [setsOne])
        origin.serve("/get", .text("x"))
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        let silent = try await stage.session("silent") { $0.httpShouldSetCookies = false }
        for session in [session, silent] { try await stage.run(.download, "GET", origin.url("/set"), in: session) }
        try await stage.run(.download, "GET", origin.url("/get"), in: session) {
            $0.request.headers.set("Cookie", "own=2")
        }
        try await stage.run(.download, "GET", origin.url("/get"), in: silent)
        #expect(cookies(origin, "/get") == ["own=2", nil])
        #expect(try await stage.service.store.sessions.cookies(of: silent.id).count == 1)
    }

    @Test(arguments: [
        (SessionConfiguration.CookieAcceptPolicy.always, 1), (.never, 0), (.onlyFromMainDocumentDomain, 0),
    ])
    func `The policy decides on cookies of other domains`(
        _ policy: SessionConfiguration.CookieAcceptPolicy, _ count: Int
    ) async throws {
        let origin = try OriginServer()
        origin.serve("/set", .text("x"), always: [setsOne])
        origin.serve("/far", .text(""), always: [.redirect("http://localhost:\(origin.port)/set")])
        let stage = try await ServiceStage.start()
        let session = try await stage.session { $0.httpCookieAcceptPolicy = policy }
        try await stage.run(.download, "GET", origin.url("/far"), in: session)
        #expect(try await stage.service.store.sessions.cookies(of: session.id).count == count)
    }

    @Test func `A redirect to another origin gets that origin's cookies, and none of the request's`() async throws {
        let (origin, other) = (try OriginServer(), try OriginServer())
        origin.serve("/", .text(""), always: [.redirect("http://localhost:\(other.port)/get")])
        other.serve("/set", .text("x"), always: [.header("Set-Cookie", "theirs=1; Path=/")])
        other.serve("/get", .text("x"))
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        try await stage.run(.download, "GET", "http://localhost:\(other.port)/set", in: session)
        try await stage.run(.download, "GET", origin.url("/"), in: session) {
            $0.request.headers.set("Cookie", "own=2")
        }
        #expect(cookies(origin, "/") == ["own=2"])
        #expect(cookies(other, "/get") == ["theirs=1"])
    }

    @Test func `Concurrent transfers lose no cookie of each other`() async throws {
        let origin = try OriginServer()
        let gate = Gate()
        for number in 0..<5 {
            origin.serve(
                "/\(number)", .text("x"), always: [.hold(gate), .header("Set-Cookie", "n\(number)=1; Path=/")])
        }
        origin.serve("/get", .text("x"))
        let stage = try await ServiceStage.start()
        let session = try await stage.session()
        var tasks: [TaskRecord] = []
        for number in 0..<5 {
            tasks.append(try await stage.create(.download, "GET", origin.url("/\(number)"), in: session))
        }
        try await origin.waitForRequests(5)
        gate.open()
        for task in tasks { _ = try await stage.completed(task) }
        try await stage.run(.download, "GET", origin.url("/get"), in: session)
        let sent = try #require(cookies(origin, "/get")[0])
        #expect(Set(sent.split(separator: "; ")) == ["n0=1", "n1=1", "n2=1", "n3=1", "n4=1"])
    }
}
