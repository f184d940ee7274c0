import Base
import TestSupport
import Testing

@testable import SQL

@Suite(.enabled(if: PostgreSQL.isAvailable, "PostgreSQL is not installed: scripts/install-packages test"))
struct `The address of a server` {
    @Test(arguments: [
        ("postgresql://ann@host/name", "postgresql://ann@host/name"),
        ("postgresql://host", "postgresql://host"),
        ("postgresql:///name?password=secret", "postgresql:///name"),
        ("postgresql://ann:secret@one:1,two:2/name?sslmode=require", "postgresql://ann@one:1,two:2/name"),
        ("postgres://ann:sec@ret@host/name", "postgres://ann@host/name"),
        ("postgres://ann:sec?ret@host/name", "postgres://ann@host/name"),
        ("postgresql://ann:secret@host?user=a@b", "postgresql://ann@b"),
    ])
    func `An address is shown without its password and options`(_ connection: String, _ shown: String) {
        #expect(PostgreSQLServer(connection).publicText == shown)
    }

    @Test func `A malformed address is reported without its password`() throws {
        #expect(try PostgreSQLServer("postgresql://ann:secret@one,two:1/name?connect_timeout=3").fault == nil)
        for broken in [
            "postgresql://ann:secret@host/name?nonsense=1", "postgresql://ann:secret@[::1]x/name",
            "postgresql://ann:secret@host/name%zz",
        ] {
            let fault = try #require(try PostgreSQLServer(broken).fault)
            #expect(!fault.isEmpty && !fault.contains("secret"), "\(fault)")
        }
    }

    @Test func `An address without a listener is unreachable at once`() throws {
        let (socket, port) = try Socket.listen(port: 0)
        socket.shutdown()
        let server = PostgreSQLServer("postgresql://ann:secret@127.0.0.1:\(port)/name")
        let start = ContinuousClock.now
        let error = #expect(throws: SQLError.self) {
            try Database.open(
                server, fence: .test("test"), migrations: [], log: .none, onFatalError: { preconditionFailure("\($0)") }
            )
        }
        #expect(error?.code == .unreachable)
        #expect(error?.description.contains("secret") == false)
        #expect(ContinuousClock.now - start < .seconds(20))
    }
}
