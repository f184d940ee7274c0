import Base
import Glibc
import TestSupport
import Testing

/// A server that responds to each chunk with the same bytes, and the chunks that it received.
private final class Echo: Sendable {
    let received: Locked<[UInt8]>
    let server: SocketServer

    init() throws {
        let received = Locked<[UInt8]>([])
        self.received = received
        server = try SocketServer(port: 0) { socket in
            while let bytes = try? socket.receive(), !bytes.isEmpty {
                received.withLock { $0 += bytes }
                try? socket.send(bytes)
            }
            socket.shutdown()
        }
    }

    var text: String { String(decoding: received.withLock { $0 }, as: UTF8.self) }
}

@Suite struct CuttingProxyTests {
    private let echo: Echo
    private let proxy: CuttingProxy

    init() throws {
        echo = try Echo()
        proxy = try CuttingProxy(to: echo.server.port)
    }

    private func connect() throws -> Socket {
        let socket = try Socket.connect(port: proxy.port)
        socket.setTimeout(.seconds(20))
        return socket
    }

    private func ask(_ socket: Socket, _ text: String) async throws -> String {
        try await onThread {
            try socket.send(text)
            return String(decoding: try socket.receive(), as: UTF8.self)
        }
    }

    @Test func `Bytes and ends pass through`() async throws {
        let client = try connect()
        #expect(try await ask(client, "one") == "one")
        #expect(proxy.connections == 1)
        client.finishSending()
        #expect(try await onThread { try client.receive() }.isEmpty)
        try await eventually("it is closed") { proxy.connections == 0 && echo.server.openConnections == 0 }
    }

    @Test func `A cut ends all connections, but not the next`() async throws {
        let clients = [try connect(), try connect()]
        for client in clients { #expect(try await ask(client, "one") == "one") }
        proxy.cut()
        #expect(proxy.connections == 0)
        for client in clients { #expect(client.waitForHangUp(atMost: .seconds(20))) }
        try await eventually("the server is told") { echo.server.openConnections == 0 }
        #expect(try await ask(try connect(), "two") == "two")
    }

    @Test func `Refused connections end at once`() async throws {
        let old = try connect()
        #expect(try await ask(old, "one") == "one")
        proxy.refuse(true)
        #expect(try connect().waitForHangUp(atMost: .seconds(20)))
        #expect(try await ask(old, "two") == "two")
        proxy.refuse(false)
        #expect(try await ask(try connect(), "three") == "three")
    }

    @Test func `No byte passes while the proxy holds`() async throws {
        let old = try connect()
        #expect(try await ask(old, "one") == "one")
        proxy.hold(true)
        async let answer = ask(old, "two")
        async let new = ask(try connect(), "three")
        try await eventually("both wait") { proxy.connections == 2 }
        try await stays("the server hears nothing", for: .milliseconds(200)) { echo.text == "one" }
        proxy.hold(false)
        #expect(try await answer == "two")
        #expect(try await new == "three")
    }

    @Test func `Held connections can be cut`() async throws {
        let client = try connect()
        #expect(try await ask(client, "one") == "one")
        proxy.hold(true)
        try client.send("two")
        proxy.cut()
        #expect(client.waitForHangUp(atMost: .seconds(20)))
        try await eventually("the server is told") { echo.server.openConnections == 0 }
        #expect(echo.text == "one")
    }

    @Test func `One response is lost, and the server has run the statement`() async throws {
        let (client, other) = (try connect(), try connect())
        proxy.loseAnswers(after: Array("COMMIT".utf8))
        #expect(try await ask(client, "begin COM") == "begin COM")
        #expect(try await ask(other, "MIT") == "MIT")
        #expect(proxy.lostAnswers == 0)
        #expect(try await ask(client, "MIT;") == "")
        #expect(echo.text == "begin COMMITMIT;")
        #expect(proxy.lostAnswers == 1)
        try await eventually("it is closed") { proxy.connections == 1 }
        #expect(try await ask(other, "COMMIT") == "COMMIT")
    }

    @Test(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
    func `A transaction with a lost response is committed`() async throws {
        let database = try await SharedPostgreSQL.database()
        let proxy = try CuttingProxy(to: database.server.port)
        try await database.query("CREATE TABLE t (a int)")
        proxy.loseAnswers(after: Array("COMMIT".utf8))
        let failure = await #expect(throws: ChildProcess.Failed.self) {
            try await database.query("BEGIN; INSERT INTO t VALUES (1); COMMIT", port: proxy.port)
        }
        #expect(failure?.errors.contains("server closed the connection") == true)
        try await eventually("it is committed") { try await database.query("SELECT 1 FROM t").count == 1 }
    }
}
